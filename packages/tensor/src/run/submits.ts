import type { Launch } from "@halfstep/device";
import { bytesFor } from "@halfstep/formats/dtypes";

/** Minimum rates of a device; estimated times are upper bounds. */
export interface DeviceRates {
  readonly bytesPerSecond: number;
  readonly operationsPerSecond: number;
}

/** A slow integrated GPU. */
export const hardwareRates: DeviceRates = { bytesPerSecond: 10e9, operationsPerSecond: 100e9 };

/** Milliseconds that a submit may take: browsers and systems reset a GPU after some seconds in one submit. */
const longestSubmit = 1000;

/** Upper bound of the milliseconds of a launch, from its bytes and its operations. */
export function estimatedMilliseconds<B>(
  { kernel, bindings, scalars }: Launch<B>,
  { bytesPerSecond, operationsPerSecond }: DeviceRates,
): number {
  let bytes = 0;
  for (const { length, dtype } of bindings) bytes += bytesFor(dtype, length);
  const operations = kernel.operations?.(scalars) ?? 0;
  return 1000 * Math.max(bytes / bytesPerSecond, operations / operationsPerSecond);
}

/**
 * Splits a plan into submits: one, unless that would take too long. The time is estimated, until a measured time is shorter.
 * Each plan is measured separately, because some plans come much closer to the device's peak rates than others.
 */
export class PlanSubmits {
  readonly #launches: number;
  readonly #estimates: readonly number[];
  readonly #estimated: number;
  #milliseconds: number;

  /** @param rates undefined for a driver that is never reset: everything in one submit. */
  constructor(launches: readonly Launch<unknown>[], rates: DeviceRates | undefined) {
    this.#launches = launches.length;
    this.#estimates = rates ? launches.map((launch) => estimatedMilliseconds(launch, rates)) : [];
    this.#estimated = this.#estimates.reduce((sum, each) => sum + each, 0);
    this.#milliseconds = this.#estimated;
  }

  /** Records an upper bound of the milliseconds of a run. */
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

/** Measures upper bounds of the time of plans' runs, from fences that are awaited anyway. */
export class RunClock {
  /** Milliseconds since an arbitrary time. */
  readonly now: () => number;
  #runs = new Map<PlanSubmits, number>();
  #since = 0;

  /** @param now milliseconds since an arbitrary time. */
  constructor(now: () => number = () => performance.now()) {
    this.now = now;
  }

  /** Records that a plan was submitted, with the time of `now()` at which its run began. */
  ran(plan: PlanSubmits, begun: number): void {
    if (this.#runs.size === 0) this.#since = begun;
    this.#runs.set(plan, (this.#runs.get(plan) ?? 0) + 1);
  }

  /** A function to call when all runs that were started so far are done. */
  fence(): () => void {
    const [runs, since] = [this.#runs, this.#since];
    this.#runs = new Map();
    return () => {
      // Earlier runs may have been in flight too, so the time is an upper bound.
      const elapsed = this.now() - since;
      for (const [plan, count] of runs) plan.measured(elapsed / count);
    };
  }
}
