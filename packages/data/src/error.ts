// `instanceof` looks for this brand, so that an error thrown by another copy of the package is recognised too.
const brand = Symbol.for("@halfstep/DataError");

/** A data file that is missing, malformed or at odds with another one. The message names the file and the remedy. */
export class DataError extends Error {
  /** The file, or the name that the caller gave to the bytes. */
  readonly source: string;

  constructor(source: string, problem: string) {
    super(`${source}: ${problem}`);
    this.name = "DataError";
    this.source = source;
    Object.defineProperty(this, brand, { value: true });
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === "object" && value !== null && brand in value;
  }
}
