import type { ResidentTarget } from "@halfstep/kernels";
import { adamRule } from "@halfstep/kernels/optimizers";
import type { Algorithm, CommonOptions, GroupInput, OptimizerOptions } from "./algorithm.js";
import { biasCorrections, noBiasCorrections, requireBetas, requireEps } from "./bias-correction.js";
import { FlatOptimizer } from "./flat-optimizer.js";
import type { FlatTensors } from "./flat-tensors.js";

/** Options of a parameter group of {@link Adam} and `AdamW`. */
export interface AdamGroupOptions extends CommonOptions {
  betas: readonly [number, number];
  /** Added to the denominator; at least 2^-126, below which it would vanish in float32. */
  eps: number;
  /** Fixed when a group is added. */
  amsgrad: boolean;
  /** False: averages that begin at 0 are used as they are, as in BERT's Adam. */
  biasCorrection: boolean;
}

/** Defaults are torch's: lr 1e-3, betas [0.9, 0.999], eps 1e-8, weightDecay 0, biasCorrection. */
export interface AdamOptions extends Partial<AdamGroupOptions>, OptimizerOptions {}

/**
 * Adam (Kingma and Ba 2015) with the arithmetic of torch.optim.Adam: weight decay is added to the gradient. Bias corrections
 * come from tables computed in float64. Without `biasCorrection` the tables hold ones, and the step is the same two launches.
 *
 * @example
 * const optimizer = new Adam(target, flat, { lr: 1e-3 });
 */
export class Adam<B> extends FlatOptimizer<B, AdamGroupOptions> {
  constructor(
    target: ResidentTarget<B>,
    params: FlatTensors<B> | readonly GroupInput<B, AdamGroupOptions>[],
    options: AdamOptions = {},
  ) {
    super(target, params, adam, { ...adamDefaults, weightDecay: 0 }, options);
  }
}

export const adamDefaults: AdamGroupOptions = {
  lr: 1e-3,
  betas: [0.9, 0.999],
  eps: 1e-8,
  weightDecay: 0.01,
  amsgrad: false,
  biasCorrection: true,
  maximize: false,
};

/** Adam with weight decay as part of the gradient, or decoupled from it. */
export const adamAlgorithm = (name: string, decoupled: boolean): Algorithm<AdamGroupOptions> => ({
  name,
  rule: ({ amsgrad }) => adamRule({ amsgrad, decoupled }),
  scalars: ({ betas: [beta1, beta2], eps, weightDecay }) => ({
    oneMinusBeta1: 1 - beta1,
    beta2,
    oneMinusBeta2: 1 - beta2,
    eps,
    weightDecay,
  }),
  validate({ betas, eps }) {
    requireBetas(betas);
    requireEps(eps);
  },
  columns: ({ betas, biasCorrection }) =>
    biasCorrection ? biasCorrections(betas) : noBiasCorrections,
});

const adam = adamAlgorithm("Adam", false);
