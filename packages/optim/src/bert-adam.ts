import type { ResidentTarget } from "@halfstep/kernels";
import { bertAdamRule } from "@halfstep/kernels/optimizers";
import type { Algorithm, CommonOptions, GroupInput, OptimizerOptions } from "./algorithm.js";
import { noBiasCorrections, requireBetas, requireEps } from "./bias-correction.js";
import { shown } from "./checks.js";
import { FlatOptimizer } from "./flat-optimizer.js";
import type { FlatTensors } from "./flat-tensors.js";
import type { Schedule } from "./schedules/schedule.js";
import {
  type BertWarmupOptions,
  warmupConstant,
  warmupCosine,
  warmupLinear,
} from "./schedules/warmup.js";

/** The schedules of pytorch-pretrained-BERT, by its names. */
export type BertSchedule = "none" | "warmup_linear" | "warmup_cosine" | "warmup_constant";

/** Options of a parameter group of {@link BertAdam}. */
export interface BertAdamGroupOptions extends CommonOptions {
  betas: readonly [number, number];
  /** Added to the denominator; at least 2^-126, below which it would vanish in float32. */
  eps: number;
  /** Each parameter's gradient is clipped to this norm; -1 for no clipping. */
  maxGradNorm: number;
  /** Multiplies `lr` from step to step; needs `tTotal`. */
  schedule: BertSchedule;
  /** Part of `tTotal` in which the rate rises; -1 for none. */
  warmup: number;
  /** Steps of the schedule; -1 for a constant rate. */
  tTotal: number;
}

/** Defaults are BertAdam's: betas [0.9, 0.999], eps 1e-6, weightDecay 0.01, maxGradNorm 1, schedule "warmup_linear", warmup -1, tTotal -1; and lr 5e-5. */
export interface BertAdamOptions extends Partial<BertAdamGroupOptions>, OptimizerOptions {}

/**
 * BertAdam of pytorch-pretrained-BERT 0.6.2: AdamW without bias correction, with a clipping of each parameter's own gradient and
 * a schedule inside, which counts applied steps. A step takes four launches.
 *
 * @example
 * const optimizer = new BertAdam(target, flat, { lr: 1e-3 });
 */
export class BertAdam<B> extends FlatOptimizer<B, BertAdamGroupOptions> {
  constructor(
    target: ResidentTarget<B>,
    params: FlatTensors<B> | readonly GroupInput<B, BertAdamGroupOptions>[],
    options: BertAdamOptions = {},
  ) {
    super(target, params, algorithm, defaults, options);
  }
}

const defaults: BertAdamGroupOptions = {
  lr: 5e-5,
  betas: [0.9, 0.999],
  eps: 1e-6,
  weightDecay: 0.01,
  maxGradNorm: 1,
  schedule: "warmup_linear",
  warmup: -1,
  tTotal: -1,
  maximize: false,
};

const algorithm: Algorithm<BertAdamGroupOptions> = {
  name: "BertAdam",
  rule: () => bertAdamRule,
  scalars: ({ betas: [beta1, beta2], eps, weightDecay, maxGradNorm }) => ({
    beta1,
    oneMinusBeta1: 1 - beta1,
    beta2,
    oneMinusBeta2: 1 - beta2,
    eps,
    weightDecay,
    maxGradNorm,
  }),
  validate({ betas, eps, maxGradNorm, schedule, warmup, tTotal }) {
    requireBetas(betas);
    requireEps(eps, "eps", 1e-6);
    if (!Number.isFinite(maxGradNorm))
      throw new RangeError(
        `maxGradNorm is ${shown(maxGradNorm)}: it must be a number, -1 for no clipping`,
      );
    if (!Object.hasOwn(schedules, schedule))
      throw new RangeError(
        `schedule is ${shown(schedule)}: choose one of ${Object.keys(schedules).join(", ")}`,
      );
    if (typeof warmup !== "number" || (warmup !== -1 && !(warmup >= 0 && warmup < 1)))
      throw new RangeError(
        `warmup is ${shown(warmup)}: it must be from 0 to less than 1, or -1 for none`,
      );
    if (tTotal !== -1 && !(Number.isSafeInteger(tTotal) && tTotal > 0))
      throw new RangeError(
        `tTotal is ${shown(tTotal)}: it must be a number of steps, or -1 for none`,
      );
  },
  columns({ schedule, warmup, tTotal }) {
    const make = schedules[schedule];
    if (tTotal === -1 || !make) return noBiasCorrections;
    const multiplier = make({ lr: 1, totalSteps: tTotal, warmup: Math.max(warmup, 0) });
    return {
      key: `${schedule},${warmup},${tTotal}`,
      settledAt: tTotal + 1,
      row: (step) => [multiplier(step), 0, 0],
    };
  },
};

const schedules: Readonly<
  Record<BertSchedule, ((options: BertWarmupOptions) => Schedule) | undefined>
> = {
  none: undefined,
  warmup_linear: warmupLinear,
  warmup_cosine: warmupCosine,
  warmup_constant: warmupConstant,
};
