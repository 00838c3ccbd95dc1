import type { ResidentTarget } from "@halfstep/kernels";
import { lionRule } from "@halfstep/kernels/optimizers";
import type { Algorithm, CommonOptions, GroupInput, OptimizerOptions } from "./algorithm.js";
import { requireBetas } from "./bias-correction.js";
import { FlatOptimizer } from "./flat-optimizer.js";
import type { FlatTensors } from "./flat-tensors.js";

/** Options of a parameter group of {@link Lion}. */
export interface LionGroupOptions extends CommonOptions {
  betas: readonly [number, number];
}

/** Defaults are the paper's: lr 1e-4, betas [0.9, 0.99], weightDecay 0. */
export interface LionOptions extends Partial<LionGroupOptions>, OptimizerOptions {}

/**
 * Lion (Chen et al. 2023): steps by the sign of an average, with decoupled weight decay. One moment only. Use 3 to 10 times less
 * `lr` than with AdamW, and as much more `weightDecay`.
 *
 * @example
 * const optimizer = new Lion(target, flat, { lr: 1e-4, weightDecay: 0.1 });
 */
export class Lion<B> extends FlatOptimizer<B, LionGroupOptions> {
  constructor(
    target: ResidentTarget<B>,
    params: FlatTensors<B> | readonly GroupInput<B, LionGroupOptions>[],
    options: LionOptions = {},
  ) {
    super(target, params, algorithm, defaults, options);
  }
}

const defaults: LionGroupOptions = {
  lr: 1e-4,
  betas: [0.9, 0.99],
  weightDecay: 0,
  maximize: false,
};

const algorithm: Algorithm<LionGroupOptions> = {
  name: "Lion",
  rule: () => lionRule,
  scalars: ({ betas: [beta1, beta2], weightDecay }) => ({
    beta1,
    oneMinusBeta1: 1 - beta1,
    beta2,
    oneMinusBeta2: 1 - beta2,
    weightDecay,
  }),
  validate: ({ betas }) => requireBetas(betas),
};
