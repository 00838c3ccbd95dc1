/** Marks an error so that `instanceof` recognises it even when a program holds two copies of this package. */
const brand: unique symbol = Symbol.for("@halfstep/StateDictError");

/** A state dict and a module do not fit together. Nothing was loaded. */
export class StateDictError extends Error {
  override readonly name: string = "StateDictError";
  /** Names that the module has and the state lacks. */
  readonly missing: readonly string[];
  /** Names that the state has and the module lacks. */
  readonly unexpected: readonly string[];
  /** Names whose shapes, or numbers of elements, differ. */
  readonly misshapen: readonly string[];

  constructor(
    message: string,
    parts: {
      readonly missing: readonly string[];
      readonly unexpected: readonly string[];
      readonly misshapen: readonly string[];
    },
  ) {
    super(message);
    this.missing = parts.missing;
    this.unexpected = parts.unexpected;
    this.misshapen = parts.misshapen;
    Object.defineProperty(this, brand, { value: true });
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === "object" && value !== null && brand in value;
  }
}
