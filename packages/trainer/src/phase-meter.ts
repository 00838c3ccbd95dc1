import type { Device } from "@halfstep/device";
import type { PhaseCost, PhaseCosts, PhaseName } from "./summary.js";

const names: readonly PhaseName[] = ["data", "record", "submit", "evaluation", "checkpoint"];

/** Times phases of training on the host's clock, and looks at the device's memory as each one ends. */
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

  /** Does a step, whose time is split where `recording` has recorded it. */
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

  /** Waits for what a phase does, and adds its time. */
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
   * @param peakBefore the device's peak when the phase began; if it has risen since, this phase has raised it
   */
  add(phase: PhaseName, milliseconds: number, peakBefore: number = Number.POSITIVE_INFINITY): void {
    const cost = this.#costs[phase];
    cost.milliseconds += milliseconds;
    cost.times++;
    const { live = 0, peak = 0 } = this.#device?.memory ?? {};
    cost.peakBytes = Math.max(cost.peakBytes, live, peak > peakBefore ? peak : 0);
  }

  /** The phases that there were. */
  costs(): PhaseCosts {
    return Object.fromEntries(
      names.filter((name) => this.#costs[name].times > 0).map((name) => [name, this.#costs[name]]),
    );
  }
}
