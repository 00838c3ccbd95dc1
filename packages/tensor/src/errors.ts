/** Marks an error so that `instanceof` recognises it even when a program holds two copies of this package. */
function brand(error: Error, name: string): void {
  error.name = name;
  Object.defineProperty(error, Symbol.for(`@halfstep/${name}`), { value: true });
}

const hasBrand = (value: unknown, name: string): boolean =>
  typeof value === "object" && value !== null && Symbol.for(`@halfstep/${name}`) in value;

/** A function of tensors was called with an argument or an option that it does not take, or without one that it needs. */
export class ArgumentError extends TypeError {
  constructor(message: string) {
    super(message);
    brand(this, "ArgumentError");
  }
  static override [Symbol.hasInstance](value: unknown): boolean {
    return hasBrand(value, "ArgumentError");
  }
}

/** An op was given shapes that it cannot work with. */
export class ShapeError extends RangeError {
  constructor(message: string) {
    super(message);
    brand(this, "ShapeError");
  }
  static override [Symbol.hasInstance](value: unknown): boolean {
    return hasBrand(value, "ShapeError");
  }
}

/** A tensor was used after the recording that made it had closed, or after `dispose()`. */
export class ClosedTensorError extends Error {
  constructor(message: string) {
    super(message);
    brand(this, "ClosedTensorError");
  }
  static override [Symbol.hasInstance](value: unknown): boolean {
    return hasBrand(value, "ClosedTensorError");
  }
}

/**
 * A call was not valid at this time: a read inside a step, tensors of several runtimes, a second backward pass over a
 * freed graph.
 */
export class RecordingError extends Error {
  constructor(message: string) {
    super(message);
    brand(this, "RecordingError");
  }
  static override [Symbol.hasInstance](value: unknown): boolean {
    return hasBrand(value, "RecordingError");
  }
}

/** A fused backward was asked for a second derivative that it does not have. */
export class NoSecondDerivativeError extends Error {
  constructor(message: string) {
    super(message);
    brand(this, "NoSecondDerivativeError");
  }
  static override [Symbol.hasInstance](value: unknown): boolean {
    return hasBrand(value, "NoSecondDerivativeError");
  }
}

/**
 * The function of a host op failed, and the runtime takes no further steps. What the step would have changed is as before, unless the op
 * is one with `isFinal`, which passes on what has changed.
 */
export class HostOpError extends Error {
  /** The name of the host op. */
  readonly op: string;

  constructor(
    op: string,
    cause: unknown,
    { isStateChanged = false }: { readonly isStateChanged?: boolean } = {},
  ) {
    const state = isStateChanged
      ? "Its step has changed parameters and state of this process alone, which cannot go on with others"
      : "Its step changed no parameter and no state";
    super(
      `host op "${op}" failed: ${cause instanceof Error ? cause.message : String(cause)}. ${state}; ` +
        "make another runtime and resume from a checkpoint",
      { cause },
    );
    this.op = op;
    brand(this, "HostOpError");
  }
  static override [Symbol.hasInstance](value: unknown): boolean {
    return hasBrand(value, "HostOpError");
  }
}
