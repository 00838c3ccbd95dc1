import { DeviceLostError, GpuError, ShaderError } from "./errors.js";

/**
 * The failure of a device. WebGPU reports errors after the call that caused them, so they are collected here and reject
 * the next await. A failure is permanent, because later results cannot be trusted.
 */
export class Health {
  /** Resolves when the device is lost or destroyed. */
  readonly lost: Promise<DeviceLostError>;
  #failure: Error | undefined;
  readonly #checks = new Set<Promise<void>>();
  readonly #label: string;

  constructor(gpu: GPUDevice, label: string) {
    this.#label = label;
    this.lost = gpu.lost.then(({ reason, message }) => this.#lose(reason, message));
    gpu.addEventListener("uncapturederror", (event) => {
      event.preventDefault();
      this.fail(new GpuError(kindOf(event.error), event.error.message));
    });
  }

  get failure(): Error | undefined {
    return this.#failure;
  }

  /**
   * Records an error. A loss has priority over a refused shader, which has priority over the errors that follow from
   * it.
   */
  fail(error: Error): void {
    if (!this.#failure || rank(error) > rank(this.#failure)) this.#failure = error;
  }

  /** Marks the device as destroyed without waiting for the event. */
  destroyed(): void {
    this.#lose("destroyed", "");
  }

  /** Adds a check that every later {@link assertWell} awaits. It resolves to the error, if there is one. */
  watch(check: Promise<Error | undefined>): void {
    const watched = check
      .then(
        (error) => {
          if (error) this.fail(error);
        },
        // A check fails only where the device is lost, which `lost` reports.
        () => {},
      )
      .finally(() => this.#checks.delete(watched));
    this.#checks.add(watched);
  }

  /** Awaits pending checks, then throws the failure of this device if there is one. */
  async assertWell(): Promise<void> {
    while (this.#checks.size > 0) await Promise.all(this.#checks);
    if (this.#failure) throw this.#failure;
  }

  /**
   * Rejects with the failure of this device, of which a refused call of WebGPU is the first sign: it is known shortly before or after.
   * Where there is none, rejects with `reason`.
   */
  async explain(reason: unknown): Promise<never> {
    await Promise.race([this.lost, new Promise((resolve) => setTimeout(resolve, 100))]);
    await this.assertWell();
    throw reason;
  }

  #lose(reason: GPUDeviceLostReason, message: string): DeviceLostError {
    if (this.#failure instanceof DeviceLostError) return this.#failure;
    const error = new DeviceLostError(this.#label, reason, message);
    this.#failure = error;
    return error;
  }
}

const rank = (error: Error): number =>
  error instanceof DeviceLostError ? 2 : error instanceof ShaderError ? 1 : 0;

// Constructors are compared by name because the classes are not global everywhere.
const kindOf = (error: GPUError): GpuError["kind"] =>
  error.constructor.name === "GPUValidationError"
    ? "validation"
    : error.constructor.name === "GPUOutOfMemoryError"
      ? "out-of-memory"
      : "internal";
