/** Most steps of a fence where waits take long by themselves. */
const mostOfFence = 64;

/** How long waits take by themselves. */
export interface WaitTimes {
  /** Milliseconds of a wait where nothing is left to do; 0 where it is short. */
  readonly latency: number;
  /** Milliseconds since an arbitrary time. */
  readonly now?: () => number;
}

/**
 * Lets the host run ahead of the device by a number of steps. A fence follows each half of that number, and the host waits for
 * the fence before the last, so that the device has work while the host wakes up and records. There are fewer fences than steps,
 * because each costs a mapping and wakes the host.
 *
 * Where a wait takes long by itself, short steps would wait for fences alone. The number of steps of a fence is then doubled while
 * fences take no longer than such a wait, and halved where the device is what takes long.
 */
export class StepsInFlight {
  readonly #least: number;
  #stepsOfFence: number;
  /** Fences that may be pending while the host goes on. */
  readonly #ahead: number;
  readonly #wait: () => Promise<void>;
  readonly #latency: number;
  readonly #now: () => number;
  readonly #pending: Promise<void>[] = [];
  #unfenced = 0;

  /**
   * @param most steps that may be in flight when another is submitted; more where waits take long by themselves.
   * @param wait resolves when all submitted work is done.
   */
  constructor(
    most: number,
    wait: () => Promise<void>,
    { latency, now = () => performance.now() }: WaitTimes = { latency: 0 },
  ) {
    if (!Number.isSafeInteger(most) || most < 1)
      throw new RangeError(`maxInFlight is ${most}: it must be a whole number from 1 on`);
    this.#least = Math.max(1, Math.floor(most / 2));
    this.#stepsOfFence = this.#least;
    this.#ahead = Math.floor(most / this.#least) - 1;
    this.#wait = wait;
    this.#latency = latency;
    this.#now = now;
  }

  submitted(): void {
    this.#unfenced++;
  }

  /** Resolves when another step may be submitted. Rejects if a step has failed. */
  async room(): Promise<void> {
    if (this.#unfenced < this.#stepsOfFence) return;
    this.#unfenced = 0;
    if (this.#ahead === 0) return this.#wait();
    if (this.#pending.length === this.#ahead) await this.#pending.shift();
    const fence = this.#latency > 0 ? this.#timedWait() : this.#wait();
    // The program may stop stepping before the fence rejects; awaits of the fence still reject.
    fence.catch(() => undefined);
    this.#pending.push(fence);
  }

  async #timedWait(): Promise<void> {
    const [steps, begun] = [this.#stepsOfFence, this.#now()];
    await this.#wait();
    const waits = (this.#now() - begun) / this.#latency;
    if (waits < 1.5)
      this.#stepsOfFence = Math.max(this.#stepsOfFence, Math.min(2 * steps, mostOfFence));
    else if (waits > 3) this.#stepsOfFence = Math.max(this.#least, Math.floor(steps / 2));
  }
}
