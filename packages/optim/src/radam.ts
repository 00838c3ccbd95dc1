import type { ResidentTarget } from "@halfstep/kernels";
import { radamRule } from "@halfstep/kernels/optimizers";
import type { Algorithm, CommonOptions, GroupInput, OptimizerOptions } from "./algorithm.js";
import { requireBetas, requireEps, settledAt } from "./bias-correction.js";
import { FlatOptimizer } from "./flat-optimizer.js";
import type { FlatTensors } from "./flat-tensors.js";
import type { RateColumns } from "./rate-table.js";

/** Options of a parameter group of {@link RAdam}. */
export interface RAdamGroupOptions extends CommonOptions {
  betas: readonly [number, number];
  /** Added to the denominator; at least 2^-126, below which it would vanish in float32. */
  eps: number;
  /** Weight decay as in AdamW; else it is added to the gradient. Fixed when a group is added. */
  decoupledWeightDecay: boolean;
}

/** Defaults are torch's: lr 1e-3, betas [0.9, 0.999], eps 1e-8, weightDecay 0. */
export interface RAdamOptions extends Partial<RAdamGroupOptions>, OptimizerOptions {}

/**
 * RAdam (Liu et al. 2020), Adam whose variance is rectified, with the arithmetic of torch.optim.RAdam. The rectification comes
 * from a table made in float64.
 *
 * @example
 * const optimizer = new RAdam(target, flat, { lr: 1e-3 });
 */
export class RAdam<B> extends FlatOptimizer<B, RAdamGroupOptions> {
  constructor(
    target: ResidentTarget<B>,
    params: FlatTensors<B> | readonly GroupInput<B, RAdamGroupOptions>[],
    options: RAdamOptions = {},
  ) {
    super(target, params, algorithm, defaults, options);
  }
}

const defaults: RAdamGroupOptions = {
  lr: 1e-3,
  betas: [0.9, 0.999],
  eps: 1e-8,
  weightDecay: 0,
  decoupledWeightDecay: false,
  maximize: false,
};

const algorithm: Algorithm<RAdamGroupOptions> = {
  name: "RAdam",
  rule: ({ decoupledWeightDecay }) => radamRule({ decoupled: decoupledWeightDecay }),
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
  columns: ({ betas }) => rectification(betas),
};

function rectification([beta1, beta2]: readonly [number, number]): RateColumns {
  const most = 2 / (1 - beta2) - 1;
  return {
    key: `${beta1},${beta2}`,
    // The length of the average settles later than beta2^t: it has a factor t.
    settledAt: 2 * Math.max(settledAt(beta1), settledAt(beta2)),
    row(step) {
      const t = step + 1;
      const correction1 = 1 / (1 - beta1 ** t);
      const correction2 = 1 - beta2 ** t;
      const length = most - (2 * t * beta2 ** t) / correction2;
      if (length <= 5) return [correction1, 0, 1];
      const rectified = Math.sqrt(
        ((length - 4) * (length - 2) * most) / ((most - 4) * (most - 2) * length),
      );
      return [correction1, rectified * Math.sqrt(correction2), 0];
    },
  };
}
