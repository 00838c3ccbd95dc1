import type { ResidentTarget } from "@halfstep/kernels";
import { asgdRule } from "@halfstep/kernels/optimizers";
import type { Algorithm, CommonOptions, GroupInput, OptimizerOptions } from "./algorithm.js";
import { requireNumber } from "./checks.js";
import { FlatOptimizer } from "./flat-optimizer.js";
import type { FlatTensors } from "./flat-tensors.js";
import type { RateColumns } from "./rate-table.js";

/** Options of a parameter group of {@link ASGD}. */
export interface ASGDGroupOptions extends CommonOptions {
  /** Decay of the parameters, and of the rate. */
  lambd: number;
  /** Power of the rate's decay. */
  alpha: number;
  /** The applied step after which averaging begins. */
  t0: number;
}

/** Defaults are torch's: lr 1e-2, lambd 1e-4, alpha 0.75, t0 1e6, weightDecay 0. */
export interface ASGDOptions extends Partial<ASGDGroupOptions>, OptimizerOptions {}

/**
 * Averaged SGD (Polyak and Juditsky 1992) with the arithmetic of torch.optim.ASGD. The averages are `ax` in the state of each parameter,
 * in float32. A new rate, by a schedule or by hand, counts for the next step; torch takes it one
 * step later.
 *
 * @example
 * const optimizer = new ASGD(target, flat, { lr: 1e-2, t0: 1000 });
 */
export class ASGD<B> extends FlatOptimizer<B, ASGDGroupOptions> {
  constructor(
    target: ResidentTarget<B>,
    params: FlatTensors<B> | readonly GroupInput<B, ASGDGroupOptions>[],
    options: ASGDOptions = {},
  ) {
    super(target, params, algorithm, defaults, options);
  }
}

const defaults: ASGDGroupOptions = {
  lr: 1e-2,
  lambd: 1e-4,
  alpha: 0.75,
  t0: 1e6,
  weightDecay: 0,
  maximize: false,
};

const algorithm: Algorithm<ASGDGroupOptions> = {
  name: "ASGD",
  rule: () => asgdRule,
  scalars: ({ lambd, weightDecay }) => ({ lambd, weightDecay }),
  validate({ lambd, alpha, t0 }) {
    requireNumber("lambd", lambd, 0);
    requireNumber("alpha", alpha, 0);
    requireNumber("t0", t0, 0);
  },
  columns: decayAndShare,
};

// A schedule is not part of the key: a table belongs to one schedule anyway.
function decayAndShare({ lr, lambd, alpha, t0 }: ASGDGroupOptions): RateColumns {
  return {
    key: [lambd, alpha, t0, typeof lr === "number" ? lr : "scheduled"].join(),
    settledAt: Number.POSITIVE_INFINITY,
    row(step) {
      const rate = typeof lr === "number" ? lr : lr(step);
      return [(1 + lambd * rate * step) ** -alpha, 1 / Math.max(1, step - t0), 0];
    },
  };
}
