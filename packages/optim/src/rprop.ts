import type { ResidentTarget } from "@halfstep/kernels";
import { rpropRule } from "@halfstep/kernels/optimizers";
import type { Algorithm, CommonOptions, GroupInput, OptimizerOptions } from "./algorithm.js";
import { requireNumber } from "./checks.js";
import { FlatOptimizer } from "./flat-optimizer.js";
import type { FlatTensors } from "./flat-tensors.js";

/** Options of a parameter group of {@link Rprop}. Its `lr` is the first step size, fixed when the group is added. */
export interface RpropGroupOptions extends CommonOptions {
  /** Factors of the step size where the gradient's sign changed, and where it is that of the step before. */
  etas: readonly [number, number];
  /** The smallest and the largest step size. */
  stepSizes: readonly [number, number];
}

/** Defaults are torch's: lr 1e-2, etas [0.5, 1.2], stepSizes [1e-6, 50]; weightDecay 0, which torch lacks here. */
export interface RpropOptions extends Partial<RpropGroupOptions>, OptimizerOptions {}

/**
 * Resilient backpropagation (Riedmiller and Braun 1993), for gradients of the whole data set, with the arithmetic of torch.optim.Rprop. It
 * uses the gradients' signs only.
 *
 * @example
 * const optimizer = new Rprop(target, flat, { lr: 1e-2 });
 */
export class Rprop<B> extends FlatOptimizer<B, RpropGroupOptions> {
  constructor(
    target: ResidentTarget<B>,
    params: FlatTensors<B> | readonly GroupInput<B, RpropGroupOptions>[],
    options: RpropOptions = {},
  ) {
    super(target, params, algorithm, defaults, options);
  }
}

const defaults: RpropGroupOptions = {
  lr: 1e-2,
  etas: [0.5, 1.2],
  stepSizes: [1e-6, 50],
  weightDecay: 0,
  maximize: false,
};

const algorithm: Algorithm<RpropGroupOptions> = {
  name: "Rprop",
  rule: () => rpropRule,
  scalars: ({ etas, stepSizes, weightDecay }) => ({
    etaMinus: etas[0],
    etaPlus: etas[1],
    smallest: stepSizes[0],
    largest: stepSizes[1],
    weightDecay,
  }),
  validate({ etas: [minus, plus], stepSizes: [smallest, largest] }) {
    if (!(minus > 0 && minus < 1 && plus > 1 && plus <= Number.MAX_VALUE))
      throw new RangeError(
        `etas are ${minus} and ${plus}: the first must lie between 0 and 1, the second above 1`,
      );
    requireNumber("stepSizes[0]", smallest, 2 ** -126);
    requireNumber("stepSizes[1]", largest, smallest);
  },
  initial: ({ lr }) => ({ stepSize: typeof lr === "number" ? lr : lr(0) }),
};
