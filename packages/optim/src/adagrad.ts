import type { ResidentTarget } from "@halfstep/kernels";
import { adagradRule } from "@halfstep/kernels/optimizers";
import type { Algorithm, CommonOptions, GroupInput, OptimizerOptions } from "./algorithm.js";
import { requireEps } from "./bias-correction.js";
import { requireNumber } from "./checks.js";
import { FlatOptimizer } from "./flat-optimizer.js";
import type { FlatTensors } from "./flat-tensors.js";

/** Options of a parameter group of {@link Adagrad}. */
export interface AdagradGroupOptions extends CommonOptions {
  lrDecay: number;
  /** Initial value of the sums of squares. Fixed when a group is added. */
  initialAccumulatorValue: number;
  /** Added to the denominator; at least 2^-126, below which it would vanish in float32. */
  eps: number;
  /** Weight decay as part of the step; else it is added to the gradient. Fixed when a group is added. */
  adagradWMode: boolean;
}

/** Defaults are torch's: lr 1e-2, lrDecay 0, weightDecay 0, initialAccumulatorValue 0, eps 1e-10, no adagradWMode. */
export interface AdagradOptions extends Partial<AdagradGroupOptions>, OptimizerOptions {}

/**
 * Adagrad (Duchi et al. 2011) with the arithmetic of torch.optim.Adagrad, and apex's `adagrad_w_mode`. Its sum of squares is float32
 * for every format of `moments`.
 *
 * @example
 * const optimizer = new Adagrad(target, flat, { lr: 1e-2 });
 */
export class Adagrad<B> extends FlatOptimizer<B, AdagradGroupOptions> {
  constructor(
    target: ResidentTarget<B>,
    params: FlatTensors<B> | readonly GroupInput<B, AdagradGroupOptions>[],
    options: AdagradOptions = {},
  ) {
    super(target, params, algorithm, defaults, options);
  }
}

const defaults: AdagradGroupOptions = {
  lr: 1e-2,
  lrDecay: 0,
  weightDecay: 0,
  initialAccumulatorValue: 0,
  eps: 1e-10,
  adagradWMode: false,
  maximize: false,
};

const algorithm: Algorithm<AdagradGroupOptions> = {
  name: "Adagrad",
  rule: ({ adagradWMode }) => adagradRule({ decoupled: adagradWMode }),
  scalars: ({ eps, weightDecay }) => ({ eps, weightDecay }),
  validate({ lrDecay, initialAccumulatorValue, eps }) {
    requireNumber("lrDecay", lrDecay, 0);
    requireNumber("initialAccumulatorValue", initialAccumulatorValue, 0);
    requireEps(eps, "eps", 1e-10);
  },
  columns: ({ lrDecay }) => ({
    key: `${lrDecay}`,
    settledAt: lrDecay === 0 ? 1 : Number.POSITIVE_INFINITY,
    row: (step) => [1 / (1 + step * lrDecay), 0, 0],
  }),
  initial: ({ initialAccumulatorValue }) => ({ sum: initialAccumulatorValue }),
};
