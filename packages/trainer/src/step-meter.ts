import type { CompileProgress, CounterValues, Device } from "@halfstep/device";
import type { PlanStatistics } from "@halfstep/tensor";
import { EvenSamples } from "./even-samples.js";
import { reportInterval } from "./reporter.js";
import type { StepCounters } from "./summary.js";
import { TrainingClock } from "./training-clock.js";

/** Counts and times steps in steady state, after the first ones have compiled programs and allocated memory. */
export class StepMeter {
  readonly #device: Device | undefined;
  readonly #samples = new EvenSamples<CounterValues>();
  readonly #windows = new EvenSamples<number>();
  readonly #now: () => number;
  readonly #clock: TrainingClock;
  /** Whether a window of steps is timed, which programs that are compiled spoil. */
  #isTiming = false;
  /** Milliseconds of the window before the last pause, and the time of the first step since then. */
  #timed = 0;
  #since: number | undefined;
  /** Milliseconds in pauses, in which the training clock goes on, and the start of the present one. */
  #paused = 0;
  #pausedSince: number | undefined;
  #before: CounterValues | undefined;
  #latest: CounterValues | undefined;
  #steps = 0;

  /** @param now the host's clock, in milliseconds */
  constructor(device: Device | undefined, now = (): number => performance.now()) {
    this.#device = device;
    this.#now = now;
    this.#clock = new TrainingClock(now);
  }

  begin(): void {
    this.#goOn();
    this.#before = this.#device?.counters.snapshot();
  }

  /** @param step counted from 1 for this meter */
  end(step: number): void {
    if (this.#device && this.#before) this.#latest = this.#device.counters.since(this.#before);
    this.#steps = step;
    const place = step % reportInterval;
    // Between reports no read of the reporter is in flight, so the counters belong to the step.
    if (this.#latest && step > reportInterval && place === reportInterval / 2)
      this.#samples.add(this.#latest);
    if (place !== 0) return;
    const now = this.#now();
    if (this.#isTiming)
      this.#windows.add((this.#timed + now - (this.#since ?? now)) / reportInterval);
    this.#isTiming = true;
    this.#timed = 0;
    this.#since = now;
  }

  /** Excludes the time in which programs are compiled. */
  compiling(progress: CompileProgress): void {
    this.#isTiming = false;
    this.#clock.compiling(progress);
  }

  /** Excludes the time of work other than training, up to the next step. Call it when the device has finished the last step. */
  pause(): void {
    if (this.#pausedSince !== undefined) return;
    const now = this.#now();
    this.#pausedSince = now;
    if (this.#since !== undefined) this.#timed += now - this.#since;
    this.#since = undefined;
  }

  #goOn(): void {
    const now = this.#now();
    if (this.#pausedSince !== undefined) this.#paused += now - this.#pausedSince;
    this.#pausedSince = undefined;
    this.#since ??= now;
  }

  /** Call it when the device has finished the last step. */
  medianMilliseconds(): number {
    const { kept } = this.#windows;
    if (kept.length > 0) return median(kept);
    if (this.#steps === 0) return 0;
    this.#goOn();
    return (1000 * this.#clock.seconds - this.#paused) / this.#steps;
  }

  counters({ casts, launches }: Pick<PlanStatistics, "casts" | "launches">): StepCounters {
    const { kept } = this.#samples;
    const samples = kept.length === 0 && this.#latest ? [this.#latest] : kept;
    const of = (name: keyof CounterValues): number => median(samples.map((s) => s[name]));
    return {
      hostWaits: of("hostWaits"),
      submits: of("submits"),
      dispatches: this.#device ? of("dispatches") : launches,
      castDispatches: casts,
      buffersCreated: of("buffersCreated"),
      bindGroupsCreated: of("bindGroupsCreated"),
    };
  }
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
