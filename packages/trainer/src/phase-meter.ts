import type { Device } from "@halfstep/device";
import type { PhaseCost, PhaseCosts, PhaseName } from "./summary.js";

const names: readonly PhaseName[] = ["data", "record", "submit", "evaluation", "checkpoint"];

/** Times phases of training on the host's clock, and reads the device's memory at the end of each. */
export class PhaseMeter {
  readonly #device: Device | undefined;
  readonly #costs: Readonly<
    Record<PhaseName, { -readonly [Name in keyof PhaseCost]: PhaseCost[Name] }>
  >;

  readonly #now: () => number;

  /** @param now the host's clock, in milliseconds */
  constructor(device: Device | undefined, now = (): number => performance.now()) {
    this.#device = device;
    this.#now = now;
    const none = () => ({ milliseconds: 0, times: 0, peakBytes: 0 });
    this.#costs = {
      data: none(),
      record: none(),
      submit: none(),
      evaluation: none(),
      checkpoint: none(),
    };
  }

  /** Runs a step, and splits its time at the end of recording. */
  async step<T>(work: (recording: <R>(record: () => R) => () => R) => Promise<T>): Promise<T> {
    const before = this.#device?.memory.peak ?? 0;
    const started = this.#now();
    let recorded = 0;
    try {
      return await work((record) => () => {
        const began = this.#now();
        try {
          return record();
        } finally {
          recorded = this.#now() - began;
        }
      });
    } finally {
      this.add("record", recorded);
      this.add("submit", this.#now() - started - recorded, before);
    }
  }

  /** Awaits the work of a phase, and adds its time. */
  async during<T>(phase: PhaseName, work: () => Promise<T>): Promise<T> {
    const before = this.#device?.memory.peak ?? 0;
    const started = this.#now();
    try {
      return await work();
    } finally {
      this.add(phase, this.#now() - started, before);
    }
  }

  /**
   * Adds the time of a phase that was measured elsewhere.
   * @param peakBefore the device's peak at the beginning of the phase; if it has risen since, it counts for this phase
   */
  add(phase: PhaseName, milliseconds: number, peakBefore: number = Number.POSITIVE_INFINITY): void {
    const cost = this.#costs[phase];
    cost.milliseconds += milliseconds;
    cost.times++;
    const { live = 0, peak = 0 } = this.#device?.memory ?? {};
    cost.peakBytes = Math.max(cost.peakBytes, live, peak > peakBefore ? peak : 0);
  }

  /** The costs of all phases. */
  costs(): PhaseCosts {
    return Object.fromEntries(
      names.filter((name) => this.#costs[name].times > 0).map((name) => [name, this.#costs[name]]),
    );
  }
}
