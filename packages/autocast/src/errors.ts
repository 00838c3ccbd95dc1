const dtypeBrand: unique symbol = Symbol.for("@halfstep/DTypeError");
const recipeBrand: unique symbol = Symbol.for("@halfstep/RecipeError");

const has = (value: unknown, brand: symbol): boolean =>
  typeof value === "object" && value !== null && brand in value;

/** An op cannot run with the dtypes it was given. `instanceof` recognises it across packages and copies of them. */
export class DTypeError extends TypeError {
  override readonly name: string = "DTypeError";

  constructor(message: string) {
    super(message);
    Object.defineProperty(this, dtypeBrand, { value: true });
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return has(value, dtypeBrand);
  }
}

/** A precision recipe names something that does not exist, or things that exclude each other. Branded as DTypeError is. */
export class RecipeError extends TypeError {
  override readonly name: string = "RecipeError";

  constructor(message: string) {
    super(message);
    Object.defineProperty(this, recipeBrand, { value: true });
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return has(value, recipeBrand);
  }
}
