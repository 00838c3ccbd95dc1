import type { ResidentTarget } from "@halfstep/kernels";
import { novogradRule } from "@halfstep/kernels/optimizers";
import type { Algorithm, CommonOptions, GroupInput, OptimizerOptions } from "./algorithm.js";
import { biasCorrections, noBiasCorrections, requireBetas, requireEps } from "./bias-correction.js";
import { shown } from "./checks.js";
import { FlatOptimizer } from "./flat-optimizer.js";
import type { FlatTensors } from "./flat-tensors.js";

/** Options of a parameter group of {@link NovoGrad}. */
export interface NovoGradGroupOptions extends CommonOptions {
  betas: readonly [number, number];
  /** Added to the denominator; at least 2^-126, below which it would vanish in float32. */
  eps: number;
  biasCorrection: boolean;
  /** Multiplies gradients by `1 - beta1` where they enter their average. */
  gradAveraging: boolean;
  /** 2, or 0 for the largest magnitude. Fixed when a group is added. */
  normType: 0 | 2;
  /** Starts the average of norms from 0 instead of the first norm. */
  initZero: boolean;
  /** Divides and decays before the first moment, as in the paper. Fixed when a group is added. */
  regInsideMoment: boolean;
}

/** Defaults are apex's: lr 1e-3, betas [0.9, 0.999], eps 1e-8, weightDecay 0, biasCorrection, gradAveraging, normType 2. */
export interface NovoGradOptions extends Partial<NovoGradGroupOptions>, OptimizerOptions {}

/**
 * NovoGrad (Ginsburg et al. 2019) by the rule of apex's FusedNovoGrad: the second moment is one number for each parameter. A
 * step takes four launches.
 *
 * @example
 * const optimizer = new NovoGrad(target, flat, { lr: 1e-3 });
 */
export class NovoGrad<B> extends FlatOptimizer<B, NovoGradGroupOptions> {
  constructor(
    target: ResidentTarget<B>,
    params: FlatTensors<B> | readonly GroupInput<B, NovoGradGroupOptions>[],
    options: NovoGradOptions = {},
  ) {
    super(target, params, algorithm, defaults, options);
  }
}

const defaults: NovoGradGroupOptions = {
  lr: 1e-3,
  betas: [0.9, 0.999],
  eps: 1e-8,
  weightDecay: 0,
  biasCorrection: true,
  gradAveraging: true,
  normType: 2,
  initZero: false,
  regInsideMoment: false,
  maximize: false,
};

const algorithm: Algorithm<NovoGradGroupOptions> = {
  name: "NovoGrad",
  rule: ({ regInsideMoment, normType }) => novogradRule({ regInsideMoment, normType }),
  scalars: ({ betas: [beta1, beta2], eps, weightDecay, gradAveraging, initZero }) => ({
    beta1,
    beta3: gradAveraging ? 1 - beta1 : 1,
    beta2,
    oneMinusBeta2: 1 - beta2,
    eps,
    weightDecay,
    initZero: Number(initZero),
  }),
  validate({ betas, eps, normType }) {
    requireBetas(betas);
    requireEps(eps);
    if (normType !== 0 && normType !== 2)
      throw new RangeError(
        `normType is ${shown(normType)}: choose 2, or 0 for the largest magnitude`,
      );
  },
  columns: ({ betas, biasCorrection }) =>
    biasCorrection ? biasCorrections(betas) : noBiasCorrections,
};
