import type { ResidentTarget } from "@halfstep/kernels";
import { nadamRule } from "@halfstep/kernels/optimizers";
import type { Algorithm, CommonOptions, GroupInput, OptimizerOptions } from "./algorithm.js";
import { requireBetas, requireEps } from "./bias-correction.js";
import { requireNumber } from "./checks.js";
import { FlatOptimizer } from "./flat-optimizer.js";
import type { FlatTensors } from "./flat-tensors.js";
import type { RateColumns } from "./rate-table.js";

/** Options of a parameter group of {@link NAdam}. */
export interface NAdamGroupOptions extends CommonOptions {
  betas: readonly [number, number];
  /** Added to the denominator; at least 2^-126, below which it would vanish in float32. */
  eps: number;
  momentumDecay: number;
  /** Weight decay as in AdamW; else it is added to the gradient. Fixed when a group is added. */
  decoupledWeightDecay: boolean;
}

/** Defaults are torch's: lr 2e-3, betas [0.9, 0.999], eps 1e-8, momentumDecay 4e-3, weightDecay 0. */
export interface NAdamOptions extends Partial<NAdamGroupOptions>, OptimizerOptions {}

/**
 * NAdam (Dozat 2016), Adam with Nesterov momentum, with the arithmetic of torch.optim.NAdam. The products of momenta come from a
 * table made in float64. Where `betas` or `momentumDecay` are changed between steps, the product of all steps is that of the new numbers;
 * torch keeps the momenta of earlier steps in its running product.
 *
 * @example
 * const optimizer = new NAdam(target, flat, { lr: 2e-3 });
 */
export class NAdam<B> extends FlatOptimizer<B, NAdamGroupOptions> {
  constructor(
    target: ResidentTarget<B>,
    params: FlatTensors<B> | readonly GroupInput<B, NAdamGroupOptions>[],
    options: NAdamOptions = {},
  ) {
    super(target, params, algorithm, defaults, options);
  }
}

const defaults: NAdamGroupOptions = {
  lr: 2e-3,
  betas: [0.9, 0.999],
  eps: 1e-8,
  momentumDecay: 4e-3,
  weightDecay: 0,
  decoupledWeightDecay: false,
  maximize: false,
};

const algorithm: Algorithm<NAdamGroupOptions> = {
  name: "NAdam",
  rule: ({ decoupledWeightDecay }) => nadamRule({ decoupled: decoupledWeightDecay }),
  scalars: ({ betas: [beta1, beta2], eps, weightDecay }) => ({
    oneMinusBeta1: 1 - beta1,
    beta2,
    oneMinusBeta2: 1 - beta2,
    eps,
    weightDecay,
  }),
  validate({ betas, eps, momentumDecay }) {
    requireBetas(betas);
    requireEps(eps);
    requireNumber("momentumDecay", momentumDecay, 0);
  },
  columns: ({ betas, momentumDecay }) => momentumColumns(betas, momentumDecay),
};

function momentumColumns([beta1, beta2]: readonly [number, number], decay: number): RateColumns {
  const mu = (t: number): number => beta1 * (1 - 0.5 * 0.96 ** (t * decay));
  const products = [1];
  const product = (t: number): number => {
    for (let i = products.length; i <= t; i++) products.push((products[i - 1] as number) * mu(i));
    return products[t] as number;
  };
  return {
    key: `${beta1},${beta2},${decay}`,
    settledAt: Number.POSITIVE_INFINITY,
    row(step) {
      const t = step + 1;
      const next = mu(t + 1);
      return [
        (1 - mu(t)) / (1 - product(t)),
        next / (1 - product(t) * next),
        1 / Math.sqrt(1 - beta2 ** t),
      ];
    },
  };
}
