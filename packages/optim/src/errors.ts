/** Marks an error so that `instanceof` recognises it even when a program holds two copies of this package. */
function brand(error: Error, name: string): void {
  error.name = name;
  Object.defineProperty(error, Symbol.for(`@halfstep/${name}`), { value: true });
}

const hasBrand = (value: unknown, name: string): boolean =>
  typeof value === "object" && value !== null && Symbol.for(`@halfstep/${name}`) in value;

/** A saved optimizer state does not fit the optimizer that is to load it. */
export class OptimizerStateError extends Error {
  constructor(message: string) {
    super(message);
    brand(this, "OptimizerStateError");
  }
  static override [Symbol.hasInstance](value: unknown): boolean {
    return hasBrand(value, "OptimizerStateError");
  }
}

/** An optimizer or its options need whole parameters, of which a shard has parts. */
export class ShardError extends Error {
  constructor(message: string) {
    super(message);
    brand(this, "ShardError");
  }
  static override [Symbol.hasInstance](value: unknown): boolean {
    return hasBrand(value, "ShardError");
  }
}

/** The norm of the gradients is infinite or NaN, and `errorIfNonfinite` is set. */
export class NonFiniteGradientError extends Error {
  constructor(message: string) {
    super(message);
    brand(this, "NonFiniteGradientError");
  }
  static override [Symbol.hasInstance](value: unknown): boolean {
    return hasBrand(value, "NonFiniteGradientError");
  }
}

/** Averages would replace parameters during training, or be averaged themselves. */
export class AverageStateError extends Error {
  constructor(message: string) {
    super(message);
    brand(this, "AverageStateError");
  }
  static override [Symbol.hasInstance](value: unknown): boolean {
    return hasBrand(value, "AverageStateError");
  }
}
