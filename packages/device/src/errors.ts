/** Marks an error so that `instanceof` recognises it even when a program holds two copies of this package. */
function brand(error: Error, name: string): void {
  error.name = name;
  Object.defineProperty(error, Symbol.for(`@halfstep/${name}`), { value: true });
}

const hasBrand = (value: unknown, name: string): boolean =>
  typeof value === "object" && value !== null && Symbol.for(`@halfstep/${name}`) in value;

/** No GPU is available. The message says what to install. */
export class NoAdapterError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    brand(this, "NoAdapterError");
  }
  static override [Symbol.hasInstance](value: unknown): boolean {
    return hasBrand(value, "NoAdapterError");
  }
}

/** The GPU was lost, or the device was destroyed, together with the contents of its buffers. */
export class DeviceLostError extends Error {
  readonly reason: GPUDeviceLostReason;

  constructor(label: string, reason: GPUDeviceLostReason, message: string) {
    const remedy = "request a new device and load the last checkpoint: the buffers are gone";
    super(
      `device "${label}" was ${reason === "destroyed" ? "destroyed" : `lost (${message})`}: ${remedy}`,
    );
    this.reason = reason;
    brand(this, "DeviceLostError");
  }
  static override [Symbol.hasInstance](value: unknown): boolean {
    return hasBrand(value, "DeviceLostError");
  }
}

/** An allocation would exceed the memory budget. Nothing was allocated. All figures are bytes. */
export class MemoryBudgetError extends Error {
  readonly wanted: number;
  readonly live: number;
  readonly budget: number;

  constructor(wanted: number, live: number, budget: number) {
    super(
      `a buffer of ${wanted} bytes does not fit: ${live} of the budget of ${budget} bytes are in use. ` +
        "Release buffers, use a smaller batch, or raise `memoryBudget`.",
    );
    this.wanted = wanted;
    this.live = live;
    this.budget = budget;
    brand(this, "MemoryBudgetError");
  }
  static override [Symbol.hasInstance](value: unknown): boolean {
    return hasBrand(value, "MemoryBudgetError");
  }
}

/** The WGSL of a kernel was refused. */
export class ShaderError extends Error {
  readonly kernel: string;
  /** The line of the program, counted from 1; 0 where the compiler names none. */
  readonly line: number;

  constructor(kernel: string, line: number, message: string) {
    super(message);
    this.kernel = kernel;
    this.line = line;
    brand(this, "ShaderError");
  }
  static override [Symbol.hasInstance](value: unknown): boolean {
    return hasBrand(value, "ShaderError");
  }
}

/** WebGPU refused an operation, or ran out of memory, after the call had returned. */
export class GpuError extends Error {
  readonly kind: "validation" | "out-of-memory" | "internal";

  constructor(kind: GpuError["kind"], message: string) {
    super(message);
    this.kind = kind;
    brand(this, "GpuError");
  }
  static override [Symbol.hasInstance](value: unknown): boolean {
    return hasBrand(value, "GpuError");
  }
}

/** A program called what its bundle leaves out under a condition of the bundler. */
export class LeftOutError extends Error {
  /** The condition, as it was given to the bundler. */
  readonly condition: string;

  /**
   * @param what names what is left out, for people.
   * @param remedy what else than removing the condition would help.
   */
  constructor(condition: string, what: string, remedy?: string) {
    super(
      `this bundle leaves out ${what}: ${remedy ? `${remedy}, or ` : ""}remove "${condition}" from the conditions of the bundler`,
    );
    this.condition = condition;
    brand(this, "LeftOutError");
  }
  static override [Symbol.hasInstance](value: unknown): boolean {
    return hasBrand(value, "LeftOutError");
  }
}
