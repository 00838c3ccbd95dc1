import { requireNumber, shown } from "../checks.js";
import {
  annealed,
  checked,
  requireCount,
  requirePart,
  type Schedule,
  schedule,
} from "./schedule.js";

/** Options of a one-cycle schedule. */
export interface OneCycleOptions {
  /** The largest rate, reached after `pctStart` of the steps. */
  readonly maxLr: number;
  readonly totalSteps: number;
  /** Part of the steps in which the rate rises. Default 0.3. */
  readonly pctStart?: number;
  /** The first rate is `maxLr / divFactor`. Default 25. */
  readonly divFactor?: number;
  /** The last rate is the first one divided by this. Default 10,000. */
  readonly finalDivFactor?: number;
}

/**
 * The one-cycle policy (Smith and Topin 2019) by torch's `OneCycleLR` with `anneal_strategy="cos"`: up to `maxLr` along
 * half a cosine, and down again far below the start. Momentum is not cycled (`cycle_momentum=False`).
 *
 * @example
 * new AdamW(target, flat, { lr: oneCycle({ maxLr: 1e-2, totalSteps: 469 }) });
 */
export function oneCycle(options: OneCycleOptions): Schedule {
  const others = ["totalSteps", "pctStart", "divFactor", "finalDivFactor"] as const;
  const {
    maxLr,
    totalSteps,
    pctStart = 0.3,
    divFactor = 25,
    finalDivFactor = 1e4,
  } = checked("oneCycle", options, ["maxLr"], others);
  requireCount("totalSteps", totalSteps);
  requirePart("pctStart", pctStart);
  for (const [name, factor] of Object.entries({ divFactor, finalDivFactor }))
    if (typeof factor !== "number" || !(factor > 0 && factor < Number.POSITIVE_INFINITY))
      throw new RangeError(`${name} is ${shown(factor)}: it must be a positive number`);
  const initialLr = maxLr / divFactor;
  const peak = pctStart * totalSteps - 1;
  const last = totalSteps - 1;
  return schedule(totalSteps, (step) =>
    step <= peak
      ? annealed(initialLr, maxLr, peak > 0 ? step / peak : 1)
      : annealed(maxLr, initialLr / finalDivFactor, (step - peak) / (last - peak)),
  );
}

/**
 * Repeated cosines from `lr` down to `minLr`, each `multiplier` times as long as the previous one: torch's
 * CosineAnnealingWarmRestarts (SGDR, Loshchilov and Hutter 2017).
 */
export function cosineRestarts(options: {
  readonly lr: number;
  /** Steps of the first cosine. */
  readonly firstSteps: number;
  /** A whole number. Default 1. */
  readonly multiplier?: number;
  /** Default 0. */
  readonly minLr?: number;
}): Schedule {
  const others = ["firstSteps", "multiplier", "minLr"] as const;
  const {
    lr,
    firstSteps,
    multiplier = 1,
    minLr = 0,
  } = checked("cosineRestarts", options, ["lr"], others);
  requireCount("firstSteps", firstSteps);
  requireCount("multiplier", multiplier);
  requireNumber("minLr", minLr, 0);
  return (step) => {
    let start = 0;
    let length = firstSteps;
    if (multiplier === 1) start = step - (step % length);
    else
      while (step >= start + length) {
        start += length;
        length *= multiplier;
      }
    return annealed(lr, minLr, (step - start) / length);
  };
}

/** Options of a cyclic schedule. */
export interface CyclicOptions {
  readonly baseLr: number;
  readonly maxLr: number;
  /** Steps in which the rate rises. Default 2000. */
  readonly stepsUp?: number;
  /** Steps in which it falls. Default: as many. */
  readonly stepsDown?: number;
  /**
   * Whether peaks are constant, halve from cycle to cycle, or shrink by `gamma` in every step. Default "triangular".
   */
  readonly mode?: "triangular" | "triangular2" | "expRange";
  /** For `"expRange"`. Default 1. */
  readonly gamma?: number;
}

/** Linear up and down between two rates: torch's CyclicLR (Smith 2017) without its cycling of momentum. */
export function cyclic(options: CyclicOptions): Schedule {
  const others = ["stepsUp", "stepsDown", "mode", "gamma"] as const;
  const {
    baseLr,
    maxLr,
    stepsUp = 2000,
    mode = "triangular",
    gamma = 1,
  } = checked("cyclic", options, ["baseLr", "maxLr"], others);
  const { stepsDown = stepsUp } = options;
  requireCount("stepsUp", stepsUp);
  requireCount("stepsDown", stepsDown);
  requireNumber("gamma", gamma, 0);
  const peaks = {
    triangular: () => 1,
    triangular2: (cycle: number) => 2 ** -cycle,
    expRange: (_: number, step: number) => gamma ** step,
  };
  if (!Object.hasOwn(peaks, mode))
    throw new RangeError(`mode is ${shown(mode)}: choose triangular, triangular2 or expRange`);
  const length = stepsUp + stepsDown;
  return (step) => {
    const cycle = Math.floor(step / length);
    const place = step - cycle * length;
    const part = place <= stepsUp ? place / stepsUp : (length - place) / stepsDown;
    return baseLr + (maxLr - baseLr) * part * peaks[mode](cycle, step);
  };
}
