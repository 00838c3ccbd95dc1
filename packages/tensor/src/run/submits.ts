import { bytesPerElement, type Launch } from "@halfstep/device";

/** What a device surely achieves; estimates of time err on the long side. */
export interface DeviceRates {
  readonly bytesPerSecond: number;
  readonly operationsPerSecond: number;
}

/** A slow integrated GPU. */
export const hardwareRates: DeviceRates = { bytesPerSecond: 10e9, operationsPerSecond: 100e9 };

/** Milliseconds that a submit may take: browsers and systems reset a GPU that is busy with one for some seconds. */
const longestSubmit = 1000;

/** Milliseconds that a launch takes at most, from the bytes that it touches and the operations that it does. */
export function estimatedMilliseconds<B>(
  { kernel, bindings, scalars }: Launch<B>,
  { bytesPerSecond, operationsPerSecond }: DeviceRates,
): number {
  let bytes = 0;
  for (const { length, dtype } of bindings) bytes += length * bytesPerElement(dtype);
  const operations = kernel.operations?.(scalars) ?? 0;
  return 1000 * Math.max(bytes / bytesPerSecond, operations / operationsPerSecond);
}

/**
 * In how many submits a plan goes: in one, unless that would take too long. How long it takes is estimated, until it has been
 * measured to take less. Each plan is measured by itself, because some come much closer to what a device can do than others.
 */
export class PlanSubmits {
  readonly #launches: number;
  readonly #estimates: readonly number[];
  readonly #estimated: number;
  #milliseconds: number;

  /** @param rates undefined for a driver that nobody resets: everything in one submit. */
  constructor(launches: readonly Launch<unknown>[], rates: DeviceRates | undefined) {
    this.#launches = launches.length;
    this.#estimates = rates ? launches.map((launch) => estimatedMilliseconds(launch, rates)) : [];
    this.#estimated = this.#estimates.reduce((sum, each) => sum + each, 0);
    this.#milliseconds = this.#estimated;
  }

  /** That a run took so many milliseconds at most. */
  measured(milliseconds: number): void {
    this.#milliseconds = Math.min(this.#milliseconds, milliseconds);
  }

  /** The positions at which the submits of the launches end. */
  ends(): readonly number[] {
    const ends: number[] = [];
    if (this.#milliseconds > longestSubmit) {
      const most = longestSubmit * (this.#estimated / this.#milliseconds);
      let sum = 0;
      for (const [i, estimate] of this.#estimates.entries()) {
        if (i > 0 && sum + estimate > most) {
          ends.push(i);
          sum = 0;
        }
        sum += estimate;
      }
    }
    ends.push(this.#launches);
    return ends;
  }
}

/** Tells plans how long their runs take at most, from when fences are reached that are awaited anyway. */
export class RunClock {
  /** Milliseconds since some moment. */
  readonly now: () => number;
  #runs = new Map<PlanSubmits, number>();
  #since = 0;

  /** @param now milliseconds since some moment. */
  constructor(now: () => number = () => performance.now()) {
    this.now = now;
  }

  /** That a plan has been submitted, from a moment of `now()` on. */
  ran(plan: PlanSubmits, begun: number): void {
    if (this.#runs.size === 0) this.#since = begun;
    this.#runs.set(plan, (this.#runs.get(plan) ?? 0) + 1);
  }

  /** What to call when all that was started so far is done. */
  fence(): () => void {
    const [runs, since] = [this.#runs, this.#since];
    this.#runs = new Map();
    return () => {
      // Earlier runs may have been under way, too: it is a bound, at most some times too long.
      const elapsed = this.now() - since;
      for (const [plan, count] of runs) plan.measured(elapsed / count);
    };
  }
}
