import { requireNumber, shown } from "../checks.js";
import {
  annealed,
  checked,
  requireCount,
  requirePart,
  type Schedule,
  schedule,
} from "./schedule.js";

/** The same rate in every step. */
export const constant = (lr: number): Schedule => {
  requireNumber("lr", lr, 0);
  return schedule(1, () => lr);
};

/**
 * From `startFactor · lr` to `endFactor · lr` in `totalSteps` equal steps, and there from then on: torch's LinearLR, whose defaults are 1 / 3 and 1.
 *
 * @throws RangeError for a `startFactor` that is not in (0, 1] and an `endFactor` that is not in [0, 1], as in torch.
 */
export function linear(options: {
  readonly lr: number;
  readonly totalSteps: number;
  /** Default 1. */
  readonly startFactor?: number;
  /** Default 0. */
  readonly endFactor?: number;
}): Schedule {
  const others = ["totalSteps", "startFactor", "endFactor"] as const;
  const {
    lr,
    totalSteps,
    startFactor = 1,
    endFactor = 0,
  } = checked("linear", options, ["lr"], others);
  requireCount("totalSteps", totalSteps);
  if (startFactor === 0)
    throw new RangeError(
      "startFactor is 0: it must be more than 0, as in torch; linearWarmup() may start at 0",
    );
  requirePart("startFactor", startFactor);
  requirePart("endFactor", endFactor);
  return schedule(
    totalSteps + 1,
    (step) => lr * (startFactor + ((endFactor - startFactor) * step) / totalSteps),
  );
}

/** Multiplies the rate by `gamma` every `stepSize` steps: torch's StepLR. */
export function stepDecay(options: {
  readonly lr: number;
  readonly stepSize: number;
  /** Default 0.1. */
  readonly gamma?: number;
}): Schedule {
  const {
    lr,
    stepSize,
    gamma = 0.1,
  } = checked("stepDecay", options, ["lr"], ["stepSize", "gamma"]);
  requireCount("stepSize", stepSize);
  requireNumber("gamma", gamma, 0);
  return (at) => lr * gamma ** Math.floor(at / stepSize);
}

/** Multiplies the rate by `gamma` at each milestone: torch's MultiStepLR. */
export function multiStep(options: {
  readonly lr: number;
  /** Steps, ascending. */
  readonly milestones: readonly number[];
  /** Default 0.1. */
  readonly gamma?: number;
}): Schedule {
  const {
    lr,
    milestones,
    gamma = 0.1,
  } = checked("multiStep", options, ["lr"], ["milestones", "gamma"]);
  requireMilestones(milestones);
  requireNumber("gamma", gamma, 0);
  return schedule(
    (milestones.at(-1) ?? 0) + 1,
    (at) => lr * gamma ** milestones.filter((milestone) => milestone <= at).length,
  );
}

/** Multiplies the rate by `gamma` in every step: torch's ExponentialLR. */
export function exponential(options: { readonly lr: number; readonly gamma: number }): Schedule {
  const { lr, gamma } = checked("exponential", options, ["lr"], ["gamma"]);
  requireNumber("gamma", gamma, 0);
  return (at) => lr * gamma ** at;
}

/** From `lr` down to 0 at `totalSteps`, as `(1 − step / totalSteps) ** power`: torch's PolynomialLR. */
export function polynomial(options: {
  readonly lr: number;
  readonly totalSteps: number;
  /** At least 0. Default 1. */
  readonly power?: number;
}): Schedule {
  const {
    lr,
    totalSteps,
    power = 1,
  } = checked("polynomial", options, ["lr"], ["totalSteps", "power"]);
  requireCount("totalSteps", totalSteps);
  requireNumber("power", power, 0);
  return schedule(totalSteps + 1, (at) => lr * (1 - at / totalSteps) ** power);
}

/**
 * From `lr` down to `minLr` along half a cosine, reached at step `totalSteps`: torch's CosineAnnealingLR, which rises again from there on. With
 * `warmupSteps` the rate first rises linearly, by `lr / warmupSteps` a step, and the cosine takes the rest.
 */
export function cosine(options: {
  readonly lr: number;
  readonly totalSteps: number;
  /** Default 0. */
  readonly minLr?: number;
  /** Default 0. */
  readonly warmupSteps?: number;
}): Schedule {
  const others = ["totalSteps", "minLr", "warmupSteps"] as const;
  const { lr, totalSteps, minLr = 0, warmupSteps = 0 } = checked("cosine", options, ["lr"], others);
  requireCount("totalSteps", totalSteps);
  requireNumber("minLr", minLr, 0);
  requireCount("warmupSteps", warmupSteps, 0);
  if (warmupSteps >= totalSteps)
    throw new RangeError(
      `warmupSteps is ${warmupSteps}: it must be less than totalSteps (${totalSteps})`,
    );
  return schedule(totalSteps + 1, (at) =>
    at < warmupSteps
      ? (lr * (at + 1)) / warmupSteps
      : annealed(lr, minLr, (at - warmupSteps) / (totalSteps - warmupSteps)),
  );
}

/** Throws a RangeError unless the milestones are whole numbers that ascend, and a TypeError for what is no list. */
export function requireMilestones(milestones: readonly number[]): void {
  if (!Array.isArray(milestones))
    throw new TypeError(
      `milestones is ${shown(milestones)}: it must be a list of steps, such as [30, 60]`,
    );
  for (const [i, milestone] of milestones.entries()) {
    requireCount(`milestones[${i}]`, milestone);
    const before = milestones[i - 1] ?? 0;
    if (milestone <= before)
      throw new RangeError(
        `milestones[${i}] is ${milestone}: it must be more than the one before it, ${before}`,
      );
  }
}
