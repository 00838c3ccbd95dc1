import type { ResidentTarget } from "@halfstep/kernels";
import { type AdamGroupOptions, adamAlgorithm, adamDefaults } from "./adam.js";
import type { GroupInput, OptimizerOptions } from "./algorithm.js";
import { FlatOptimizer } from "./flat-optimizer.js";
import type { FlatTensors } from "./flat-tensors.js";

/** Options of a parameter group of {@link AdamW}. */
export type AdamWGroupOptions = AdamGroupOptions;

/** Defaults are torch's: lr 1e-3, betas [0.9, 0.999], eps 1e-8, weightDecay 0.01, biasCorrection. */
export interface AdamWOptions extends Partial<AdamWGroupOptions>, OptimizerOptions {}

/**
 * AdamW (Loshchilov and Hutter 2019) with the arithmetic of torch.optim.AdamW: weight decay does not touch the gradient. Bias
 * corrections come from tables made in float64.
 *
 * @example
 * const optimizer = new AdamW(target, flat, { lr: 1e-3 });
 */
export class AdamW<B> extends FlatOptimizer<B, AdamWGroupOptions> {
  constructor(
    target: ResidentTarget<B>,
    params: FlatTensors<B> | readonly GroupInput<B, AdamWGroupOptions>[],
    options: AdamWOptions = {},
  ) {
    super(target, params, algorithm, adamDefaults, options);
  }
}

const algorithm = adamAlgorithm("AdamW", true);
