import type { ResidentTarget } from "@halfstep/kernels";
import { sgdRule } from "@halfstep/kernels/optimizers";
import type { Algorithm, CommonOptions, GroupInput, OptimizerOptions } from "./algorithm.js";
import { requireNumber } from "./checks.js";
import { FlatOptimizer } from "./flat-optimizer.js";
import type { FlatTensors } from "./flat-tensors.js";

/** Options of a parameter group of {@link SGD}. */
export interface SGDGroupOptions extends CommonOptions {
  momentum: number;
  dampening: number;
  nesterov: boolean;
  /** Adds weight decay to the step behind the momentum, which then holds gradients alone. Fixed when a group with momentum is added. */
  wdAfterMomentum: boolean;
}

/** Defaults are torch's: lr 1e-3, and no momentum, dampening, weight decay or Nesterov; weight decay enters the momentum. */
export interface SGDOptions extends Partial<SGDGroupOptions>, OptimizerOptions {}

/**
 * Stochastic gradient descent with the arithmetic of torch.optim.SGD, and apex's `wd_after_momentum`. Whether a group has momentum
 * is fixed when the group is added.
 *
 * @example
 * const optimizer = new SGD(target, flat, { lr: 0.1, momentum: 0.9, nesterov: true });
 */
export class SGD<B> extends FlatOptimizer<B, SGDGroupOptions> {
  constructor(
    target: ResidentTarget<B>,
    params: FlatTensors<B> | readonly GroupInput<B, SGDGroupOptions>[],
    options: SGDOptions = {},
  ) {
    super(target, params, algorithm, defaults, options);
  }
}

const defaults: SGDGroupOptions = {
  lr: 1e-3,
  momentum: 0,
  dampening: 0,
  nesterov: false,
  wdAfterMomentum: false,
  weightDecay: 0,
  maximize: false,
};

const algorithm: Algorithm<SGDGroupOptions> = {
  name: "SGD",
  rule: ({ momentum, wdAfterMomentum }) =>
    sgdRule({
      momentum: momentum !== 0,
      ...(wdAfterMomentum && momentum !== 0 && { decaysAfter: true }),
    }),
  scalars: ({ momentum, dampening, nesterov, weightDecay }) => ({
    momentum,
    oneMinusDampening: 1 - dampening,
    nesterov: Number(nesterov),
    weightDecay,
  }),
  validate({ momentum, dampening, nesterov }) {
    requireNumber("momentum", momentum, 0);
    requireNumber("dampening", dampening, 0);
    if (nesterov && (momentum === 0 || dampening !== 0))
      throw new RangeError("nesterov needs a momentum above 0 and a dampening of 0");
  },
};
