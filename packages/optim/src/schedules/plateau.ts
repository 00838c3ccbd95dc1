import { requireKnown, requireNumber, requireOptions, shown } from "../checks.js";
import type { LearningRate } from "./schedule.js";

/** A group of an optimizer whose rate a plateau schedule changes. */
export interface ScheduledGroup {
  lr: LearningRate;
}

/** Options of a schedule that lowers rates when a metric stops improving. */
export interface ReduceOnPlateauOptions {
  /** Whether the metric should fall or rise. Default "min". */
  readonly mode?: "min" | "max";
  /** Factor of the rates. Default 0.1. */
  readonly factor?: number;
  /** Number of metrics without improvement that are tolerated. Default 10. */
  readonly patience?: number;
  /** The least improvement that counts. Default 1e-4. */
  readonly threshold?: number;
  /** Whether `threshold` is a part of the best metric or a difference. Default "relative". */
  readonly thresholdMode?: "relative" | "absolute";
  /** Number of metrics after a reduction that are ignored. Default 0. */
  readonly cooldown?: number;
  /** Rates do not fall below this. Default 0. */
  readonly minLr?: number;
  /** Smaller reductions are not made. Default 1e-8. */
  readonly eps?: number;
}

/** The state that changes with each metric. */
export interface PlateauState {
  /** Null before the first metric, so that JSON holds it. */
  readonly best: number | null;
  readonly badMetrics: number;
  readonly cooldownLeft: number;
}

/**
 * Lowers the rates of an optimizer's groups when a metric stops improving: torch's ReduceLROnPlateau. It runs on the host,
 * for example after an evaluation; the device's steps need not wait for it.
 *
 * @example
 * const plateau = new ReduceOnPlateau(optimizer.paramGroups, { patience: 3 });
 * plateau.step(validationLoss);
 */
export class ReduceOnPlateau {
  readonly #groups: readonly ScheduledGroup[];
  readonly #options: Required<ReduceOnPlateauOptions>;
  #state: PlateauState;

  /** @throws RangeError where an option is out of range; TypeError where a group's rate is a schedule, not a number. */
  constructor(groups: readonly ScheduledGroup[], options: ReduceOnPlateauOptions = {}) {
    if (!Array.isArray(groups))
      throw new TypeError("ReduceOnPlateau takes groups first: pass optimizer.paramGroups");
    requireOptions("ReduceOnPlateau", options);
    requireKnown("ReduceOnPlateau", options, defaults);
    this.#groups = groups;
    this.#options = { ...defaults, ...options };
    const { mode, factor, thresholdMode } = this.#options;
    if (typeof factor !== "number" || !(factor > 0 && factor < 1))
      throw new RangeError(`factor is ${shown(factor)}: it must be more than 0 and less than 1`);
    if (mode !== "min" && mode !== "max")
      throw new RangeError(`mode is ${shown(mode)}: choose "min" or "max"`);
    if (thresholdMode !== "relative" && thresholdMode !== "absolute")
      throw new RangeError(
        `thresholdMode is ${shown(thresholdMode)}: choose "relative" or "absolute"`,
      );
    for (const name of ["patience", "threshold", "cooldown", "minLr", "eps"] as const)
      requireNumber(name, this.#options[name], 0);
    for (const group of groups) rateOf(group);
    this.#state = { best: null, badMetrics: 0, cooldownLeft: 0 };
  }

  /**
   * Takes a metric, and lowers the rates if it is due. Returns whether it did. A NaN is never an improvement.
   *
   * @throws TypeError for a metric that is no number.
   */
  step(metric: number): boolean {
    if (typeof metric !== "number")
      throw new TypeError(
        `ReduceOnPlateau.step(metric): metric is ${shown(metric)}; pass a number, such as await loss.item()`,
      );
    const { patience, cooldown, factor, minLr, eps } = this.#options;
    let { best, badMetrics, cooldownLeft } = this.#state;
    if (this.#isBetter(metric, best ?? worst(this.#options.mode))) {
      best = metric;
      badMetrics = 0;
    } else badMetrics++;
    if (cooldownLeft > 0) {
      cooldownLeft--;
      badMetrics = 0;
    }
    const isDue = badMetrics > patience;
    if (isDue) {
      for (const group of this.#groups) {
        const before = rateOf(group);
        const after = Math.max(before * factor, minLr);
        if (before - after > eps) group.lr = after;
      }
      cooldownLeft = cooldown;
      badMetrics = 0;
    }
    this.#state = { best, badMetrics, cooldownLeft };
    return isDue;
  }

  stateDict(): PlateauState {
    return this.#state;
  }

  /** @throws TypeError where a number is missing. */
  loadStateDict({ best, badMetrics, cooldownLeft }: PlateauState): void {
    for (const [name, value] of Object.entries({ best, badMetrics, cooldownLeft }))
      if (typeof value !== "number" && !(name === "best" && value === null))
        throw new TypeError(
          `the state of a plateau has no number ${name}: load what stateDict() gave`,
        );
    this.#state = { best, badMetrics, cooldownLeft };
  }

  #isBetter(metric: number, best: number): boolean {
    const { mode, threshold, thresholdMode } = this.#options;
    const sign = mode === "min" ? -1 : 1;
    const bar =
      thresholdMode === "relative" ? best * (1 + sign * threshold) : best + sign * threshold;
    return mode === "min" ? metric < bar : metric > bar;
  }
}

const defaults: Required<ReduceOnPlateauOptions> = {
  mode: "min",
  factor: 0.1,
  patience: 10,
  threshold: 1e-4,
  thresholdMode: "relative",
  cooldown: 0,
  minLr: 0,
  eps: 1e-8,
};

const worst = (mode: "min" | "max"): number =>
  mode === "min" ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY;

function rateOf({ lr }: ScheduledGroup): number {
  if (typeof lr === "number") return lr;
  throw new TypeError(
    "ReduceOnPlateau multiplies rates that are numbers, and a group's rate is a schedule: give it a number, or build the decay into the schedule",
  );
}
