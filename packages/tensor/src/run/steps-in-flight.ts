/**
 * Lets the host run ahead of the device by a number of steps. A fence follows each half of that number, and the host waits for
 * the fence before the last, so that the device has work while the host wakes up and records. There are fewer fences than steps,
 * because each costs a mapping and wakes the host.
 */
export class StepsInFlight {
  readonly #stepsOfFence: number;
  /** Fences that may be pending while the host goes on. */
  readonly #ahead: number;
  readonly #fence: () => Promise<void>;
  readonly #pending: Promise<void>[] = [];
  #unfenced = 0;

  /**
   * @param most steps that may be in flight when another is submitted.
   * @param fence resolves when all submitted work is done.
   */
  constructor(most: number, fence: () => Promise<void>) {
    if (!Number.isSafeInteger(most) || most < 1)
      throw new RangeError(`maxInFlight is ${most}: it must be a whole number from 1 on`);
    this.#stepsOfFence = Math.max(1, Math.floor(most / 2));
    this.#ahead = Math.floor(most / this.#stepsOfFence) - 1;
    this.#fence = fence;
  }

  submitted(): void {
    this.#unfenced++;
  }

  /** Resolves when another step may be submitted. Rejects if a step has failed. */
  async room(): Promise<void> {
    if (this.#unfenced < this.#stepsOfFence) return;
    this.#unfenced = 0;
    if (this.#ahead === 0) return this.#fence();
    if (this.#pending.length === this.#ahead) await this.#pending.shift();
    const fence = this.#fence();
    // The program may stop stepping before the fence rejects; awaits of the fence still reject.
    fence.catch(() => undefined);
    this.#pending.push(fence);
  }
}
