import type { ResidentTarget } from "@halfstep/kernels";
import { rmspropRule } from "@halfstep/kernels/optimizers";
import type { Algorithm, CommonOptions, GroupInput, OptimizerOptions } from "./algorithm.js";
import { requireEps } from "./bias-correction.js";
import { requireNumber } from "./checks.js";
import { FlatOptimizer } from "./flat-optimizer.js";
import type { FlatTensors } from "./flat-tensors.js";

/** Options of a parameter group of {@link RMSprop}. */
export interface RMSpropGroupOptions extends CommonOptions {
  alpha: number;
  /** Added to the denominator; at least 2^-126, below which it would vanish in float32. */
  eps: number;
  /** Whether it is 0 is fixed when a group is added. */
  momentum: number;
  /** Divides by the standard deviation instead of the root of the second moment. Fixed when a group is added. */
  centered: boolean;
}

/** Defaults are torch's: lr 1e-2, alpha 0.99, eps 1e-8, no momentum, not centered, weightDecay 0. */
export interface RMSpropOptions extends Partial<RMSpropGroupOptions>, OptimizerOptions {}

/**
 * RMSprop (Hinton 2012; centered: Graves 2013) with the arithmetic of torch.optim.RMSprop.
 *
 * @example
 * const optimizer = new RMSprop(target, flat, { lr: 1e-2, momentum: 0.9 });
 */
export class RMSprop<B> extends FlatOptimizer<B, RMSpropGroupOptions> {
  constructor(
    target: ResidentTarget<B>,
    params: FlatTensors<B> | readonly GroupInput<B, RMSpropGroupOptions>[],
    options: RMSpropOptions = {},
  ) {
    super(target, params, algorithm, defaults, options);
  }
}

const defaults: RMSpropGroupOptions = {
  lr: 1e-2,
  alpha: 0.99,
  eps: 1e-8,
  momentum: 0,
  centered: false,
  weightDecay: 0,
  maximize: false,
};

const algorithm: Algorithm<RMSpropGroupOptions> = {
  name: "RMSprop",
  rule: ({ centered, momentum }) => rmspropRule({ centered, momentum: momentum !== 0 }),
  scalars: ({ alpha, eps, weightDecay, momentum }) => ({
    alpha,
    oneMinusAlpha: 1 - alpha,
    eps,
    weightDecay,
    momentum,
  }),
  validate({ alpha, eps, momentum }) {
    requireNumber("alpha", alpha, 0, 1);
    requireEps(eps);
    requireNumber("momentum", momentum, 0);
  },
};
