const brand = Symbol.for("@halfstep/MissingPackageError");

/** A package is not installed that a tracker of experiments needs. The message says what to install. */
export class MissingPackageError extends Error {
  constructor(who: string, packages: readonly string[]) {
    super(`${who} ${packages.join(", ")}: npm install ${packages.join(" ")}`);
    this.name = "MissingPackageError";
    Object.defineProperty(this, brand, { value: true });
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === "object" && value !== null && brand in value;
  }
}

/**
 * What to throw where packages cannot be loaded that users install for themselves. Each `import()` of one is
 * awaited by itself in the block of a `try`: esbuild allows only such imports to name a package that is missing.
 */
export function failureOfPeers(error: unknown, who: string, packages: readonly string[]): unknown {
  const { code } = error as NodeJS.ErrnoException;
  const isMissing = code === "ERR_MODULE_NOT_FOUND" || code === "MODULE_NOT_FOUND";
  return isMissing ? new MissingPackageError(who, packages) : error;
}
