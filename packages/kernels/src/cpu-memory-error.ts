const brand = Symbol.for("@halfstep/CpuMemoryError");

/** The CPU could not allocate a buffer: the process has not enough memory, or no array may be that large. */
export class CpuMemoryError extends RangeError {
  override readonly name: string = "CpuMemoryError";
  /** The bytes that were asked for. */
  readonly wanted: number;

  constructor(wanted: number, options?: ErrorOptions) {
    super(
      `the CPU cannot allocate a buffer of ${wanted} bytes: the process has not enough memory, or no array may be that large. Use a smaller batch or smaller tensors`,
      options,
    );
    this.wanted = wanted;
    Object.defineProperty(this, brand, { value: true });
  }
  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === "object" && value !== null && brand in value;
  }
}
