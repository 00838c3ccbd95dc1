import type { ResidentTarget } from "@halfstep/kernels";
import { adadeltaRule } from "@halfstep/kernels/optimizers";
import type { Algorithm, CommonOptions, GroupInput, OptimizerOptions } from "./algorithm.js";
import { requireEps } from "./bias-correction.js";
import { requireNumber } from "./checks.js";
import { FlatOptimizer } from "./flat-optimizer.js";
import type { FlatTensors } from "./flat-tensors.js";

/** Options of a parameter group of {@link Adadelta}. */
export interface AdadeltaGroupOptions extends CommonOptions {
  rho: number;
  /** Added to squares; at least 2^-126, below which it would vanish in float32. */
  eps: number;
}

/** Defaults are torch's: lr 1, rho 0.9, eps 1e-6, weightDecay 0. */
export interface AdadeltaOptions extends Partial<AdadeltaGroupOptions>, OptimizerOptions {}

/**
 * Adadelta (Zeiler 2012) with the arithmetic of torch.optim.Adadelta.
 *
 * @example
 * const optimizer = new Adadelta(target, flat, { lr: 1 });
 */
export class Adadelta<B> extends FlatOptimizer<B, AdadeltaGroupOptions> {
  constructor(
    target: ResidentTarget<B>,
    params: FlatTensors<B> | readonly GroupInput<B, AdadeltaGroupOptions>[],
    options: AdadeltaOptions = {},
  ) {
    super(target, params, algorithm, defaults, options);
  }
}

const defaults: AdadeltaGroupOptions = {
  lr: 1,
  rho: 0.9,
  eps: 1e-6,
  weightDecay: 0,
  maximize: false,
};

const algorithm: Algorithm<AdadeltaGroupOptions> = {
  name: "Adadelta",
  rule: () => adadeltaRule,
  scalars: ({ rho, eps, weightDecay }) => ({ rho, oneMinusRho: 1 - rho, eps, weightDecay }),
  validate({ rho, eps }) {
    requireNumber("rho", rho, 0, 1);
    requireEps(eps, "eps", 1e-6);
  },
};
