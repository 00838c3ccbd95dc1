import type { ResidentTarget } from "@halfstep/kernels";
import { lambRule } from "@halfstep/kernels/optimizers";
import type { Algorithm, CommonOptions, GroupInput, OptimizerOptions } from "./algorithm.js";
import { noBiasCorrections, requireBetas, requireEps, settledAt } from "./bias-correction.js";
import { requireOptions, requirePositive } from "./checks.js";
import { FlatOptimizer } from "./flat-optimizer.js";
import type { FlatTensors } from "./flat-tensors.js";

/** Options of a parameter group of {@link LAMB}. */
export interface LAMBGroupOptions extends CommonOptions {
  betas: readonly [number, number];
  /** Added to the denominator; at least 2^-126, below which it would vanish in float32. */
  eps: number;
  biasCorrection: boolean;
  /** Multiplies gradients by `1 - beta1` where they enter their average. */
  gradAveraging: boolean;
  /** Weight decay as part of the step; else it is added to the gradient. Fixed when a group is added. */
  adamWMode: boolean;
  /** Adapts the rate of parameters without weight decay too. */
  useNvlamb: boolean;
}

/** Defaults are apex's: lr 1e-3, betas [0.9, 0.999], eps 1e-6, weightDecay 0.01, maxGradNorm 1, gradAveraging, adamWMode. */
export interface LAMBOptions
  extends Partial<LAMBGroupOptions>,
    Omit<OptimizerOptions, "clipGradNorm"> {
  /** Largest norm of all gradients together; Infinity for no clipping. Default 1. */
  readonly maxGradNorm?: number;
}

/**
 * LAMB (You et al. 2020) by the rule of apex's FusedLAMB: gradients are clipped by their norm over all parameters (`maxGradNorm`,
 * Infinity for none), and each parameter steps by `lr |p| / |update|`. A step takes five launches.
 *
 * @example
 * const optimizer = new LAMB(target, flat, { lr: 1e-3 });
 */
export class LAMB<B> extends FlatOptimizer<B, LAMBGroupOptions> {
  constructor(
    target: ResidentTarget<B>,
    params: FlatTensors<B> | readonly GroupInput<B, LAMBGroupOptions>[],
    options: LAMBOptions = {},
  ) {
    requireOptions("LAMB", options);
    const { maxGradNorm = 1, ...own } = options;
    requirePositive("maxGradNorm", maxGradNorm);
    super(target, params, algorithm, defaults, { clipGradNorm: maxGradNorm, ...own });
  }
}

const defaults: LAMBGroupOptions = {
  lr: 1e-3,
  betas: [0.9, 0.999],
  eps: 1e-6,
  weightDecay: 0.01,
  biasCorrection: true,
  gradAveraging: true,
  adamWMode: true,
  useNvlamb: false,
  maximize: false,
};

const algorithm: Algorithm<LAMBGroupOptions> = {
  name: "LAMB",
  rule: ({ adamWMode }) => lambRule({ decoupled: adamWMode }),
  scalars: ({ betas: [beta1, beta2], eps, weightDecay, gradAveraging, useNvlamb }) => ({
    beta1,
    beta3: gradAveraging ? 1 - beta1 : 1,
    beta2,
    oneMinusBeta2: 1 - beta2,
    eps,
    weightDecay,
    adapts: Number(useNvlamb || weightDecay !== 0),
  }),
  validate({ betas, eps }) {
    requireBetas(betas);
    requireEps(eps, "eps", 1e-6);
  },
  columns: ({ betas: [beta1, beta2], biasCorrection }) =>
    biasCorrection
      ? {
          key: `${beta1},${beta2}`,
          settledAt: Math.max(settledAt(beta1), settledAt(beta2)),
          row: (step) => [1 / (1 - beta1 ** (step + 1)), 1 / (1 - beta2 ** (step + 1)), 0],
        }
      : noBiasCorrections,
  clipEps: 0,
};
