import type { ResidentTarget } from "@halfstep/kernels";
import { adamaxRule } from "@halfstep/kernels/optimizers";
import type { Algorithm, CommonOptions, GroupInput, OptimizerOptions } from "./algorithm.js";
import { biasCorrections, requireBetas, requireEps } from "./bias-correction.js";
import { FlatOptimizer } from "./flat-optimizer.js";
import type { FlatTensors } from "./flat-tensors.js";

/** Options of a parameter group of {@link Adamax}. */
export interface AdamaxGroupOptions extends CommonOptions {
  betas: readonly [number, number];
  /** Added to the magnitude of the gradient; at least 2^-126, below which it would vanish in float32. */
  eps: number;
}

/** Defaults are torch's: lr 2e-3, betas [0.9, 0.999], eps 1e-8, weightDecay 0. */
export interface AdamaxOptions extends Partial<AdamaxGroupOptions>, OptimizerOptions {}

/**
 * Adamax (Kingma and Ba 2015), Adam with the infinity norm, with the arithmetic of torch.optim.Adamax.
 *
 * @example
 * const optimizer = new Adamax(target, flat, { lr: 2e-3 });
 */
export class Adamax<B> extends FlatOptimizer<B, AdamaxGroupOptions> {
  constructor(
    target: ResidentTarget<B>,
    params: FlatTensors<B> | readonly GroupInput<B, AdamaxGroupOptions>[],
    options: AdamaxOptions = {},
  ) {
    super(target, params, algorithm, defaults, options);
  }
}

const defaults: AdamaxGroupOptions = {
  lr: 2e-3,
  betas: [0.9, 0.999],
  eps: 1e-8,
  weightDecay: 0,
  maximize: false,
};

const algorithm: Algorithm<AdamaxGroupOptions> = {
  name: "Adamax",
  rule: () => adamaxRule,
  scalars: ({ betas: [beta1, beta2], eps, weightDecay }) => ({
    oneMinusBeta1: 1 - beta1,
    beta2,
    eps,
    weightDecay,
  }),
  validate({ betas, eps }) {
    requireBetas(betas);
    requireEps(eps);
  },
  columns: ({ betas }) => biasCorrections(betas),
};
