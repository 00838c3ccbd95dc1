const brand: unique symbol = Symbol.for("@halfstep/DTypeError");

/** An op cannot run with the dtypes it was given. `instanceof` recognises it across packages and copies of them. */
export class DTypeError extends TypeError {
  override readonly name: string = "DTypeError";

  constructor(message: string) {
    super(message);
    Object.defineProperty(this, brand, { value: true });
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === "object" && value !== null && brand in value;
  }
}
