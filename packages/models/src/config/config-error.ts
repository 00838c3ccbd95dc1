/** Marks an error so that `instanceof` recognises it even when a program holds two copies of this package. */
const brand: unique symbol = Symbol.for("@halfstep/ConfigError");

/**
 * A `config.json` from which no model of this package can be made. The message names the file, the field, and what it
 * may be.
 */
export class ConfigError extends Error {
  override readonly name: string = "ConfigError";
  /** The file, or the name that the caller gave to the value. */
  readonly source: string;

  constructor(source: string, problem: string) {
    super(`${source}: ${problem}`);
    this.source = source;
    Object.defineProperty(this, brand, { value: true });
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === "object" && value !== null && brand in value;
  }
}
