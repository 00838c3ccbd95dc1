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
 * Loads packages that users install for themselves.
 * @throws MissingPackageError
 */
export async function peerPackage<T>(
  load: () => Promise<T> | T,
  who: string,
  packages: readonly string[],
): Promise<T> {
  try {
    return await load();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ERR_MODULE_NOT_FOUND" || code === "MODULE_NOT_FOUND")
      throw new MissingPackageError(who, packages);
    throw error;
  }
}
