import { requireNumber } from "../checks.js";
import { requireMilestones } from "./decay.js";
import { checked, requireCount, requirePart, type Schedule, schedule } from "./schedule.js";

/** From `startFactor · lr` up to `lr` in `warmupSteps` equal steps, and `lr` from then on: torch's LinearLR. */
export function linearWarmup(options: {
  readonly lr: number;
  readonly warmupSteps: number;
  /** Default 1 / 3, as in torch. */
  readonly startFactor?: number;
}): Schedule {
  const {
    lr,
    warmupSteps,
    startFactor = 1 / 3,
  } = checked("linearWarmup", options, ["lr"], ["warmupSteps", "startFactor"]);
  requireCount("warmupSteps", warmupSteps);
  requirePart("startFactor", startFactor);
  return schedule(
    warmupSteps + 1,
    (step) => lr * (startFactor + ((1 - startFactor) * step) / warmupSteps),
  );
}

/** Options of BERT's warm-up schedule. */
export interface BertWarmupOptions {
  /** The rate at the end of the warm-up. */
  readonly lr: number;
  readonly totalSteps: number;
  /** Part of the steps in which the rate rises from 0; 1 for all of them. Default 0.1, as in run_classifier. */
  readonly warmup?: number;
}

/** Up from 0 during the warm-up, then straight down to 0 at `totalSteps`: BERT's `WarmupLinearSchedule`. */
export const warmupLinear = (options: BertWarmupOptions): Schedule =>
  bertWarmup("warmupLinear", options, (progress, warmup) =>
    Math.max((progress - 1) / (warmup - 1), 0),
  );

/** Up from 0 during the warm-up, then `lr`: BERT's `WarmupConstantSchedule`. */
export const warmupConstant = (options: BertWarmupOptions): Schedule =>
  bertWarmup("warmupConstant", options, () => 1);

/** Up from 0 during the warm-up, then down along `cycles` cosines (half a cosine ends at 0): `WarmupCosineSchedule`. */
export const warmupCosine = ({
  cycles = 0.5,
  ...options
}: BertWarmupOptions & {
  /** Default 0.5. */
  readonly cycles?: number;
}): Schedule => {
  requireNumber("cycles", cycles, 0);
  return bertWarmup("warmupCosine", options, (progress, warmup) => {
    const part = (progress - warmup) / (1 - warmup);
    return 0.5 * (1 + Math.cos(2 * Math.PI * cycles * part));
  });
};

/** The rate of run_classifier's schedules, by the completed part of all steps. */
function bertWarmup(
  name: string,
  options: BertWarmupOptions,
  after: (progress: number, warmup: number) => number,
): Schedule {
  const { lr, totalSteps, warmup = 0.1 } = checked(name, options, ["lr"], ["totalSteps", "warmup"]);
  requireCount("totalSteps", totalSteps);
  requirePart("warmup", warmup);
  return schedule(totalSteps + 1, (step) => {
    const progress = step / totalSteps;
    const isWarming = progress < warmup || warmup === 1;
    return lr * (isWarming ? progress / warmup : after(progress, warmup));
  });
}

/**
 * The schedule of apex's ImageNet trainer: `lr` divided by 10 at epochs 30, 60 and 80, and a linear warm-up over the first
 * five epochs. The trainer scales `lr` by the global batch beforehand: `lr · batch / 256`.
 */
export function imagenet(options: {
  readonly lr: number;
  readonly stepsPerEpoch: number;
  /** Default 5. */
  readonly warmupEpochs?: number;
  /** Epochs. Default 30, 60, 80. */
  readonly milestones?: readonly number[];
  /** Default 0.1. */
  readonly gamma?: number;
}): Schedule {
  const others = ["stepsPerEpoch", "warmupEpochs", "milestones", "gamma"] as const;
  const {
    lr,
    stepsPerEpoch,
    warmupEpochs = 5,
    milestones = [30, 60, 80],
    gamma = 0.1,
  } = checked("imagenet", options, ["lr"], others);
  requireCount("stepsPerEpoch", stepsPerEpoch);
  requireCount("warmupEpochs", warmupEpochs, 0);
  requireNumber("gamma", gamma, 0);
  requireMilestones(milestones);
  const last = Math.max(milestones.at(-1) ?? 0, warmupEpochs) * stepsPerEpoch;
  return schedule(last + 1, (step) => {
    const epoch = Math.floor(step / stepsPerEpoch);
    const decayed = lr * gamma ** milestones.filter((milestone) => milestone <= epoch).length;
    return epoch < warmupEpochs ? (decayed * (1 + step)) / (warmupEpochs * stepsPerEpoch) : decayed;
  });
}
