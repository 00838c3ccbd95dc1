import type { GradientMark, MarkedGradient } from "@halfstep/grad-scaler";
import { type LarcScalars, larcRule } from "@halfstep/kernels/optimizers";
import type {
  CommonOptions,
  GradientAdaptation,
  GroupInput,
  ParameterGroup,
  StepOptions,
} from "./algorithm.js";
import { requireEps } from "./bias-correction.js";
import {
  requireBoolean,
  requireNames,
  requireNone,
  requireNumber,
  requireOptimizer,
  requireOptions,
} from "./checks.js";
import type { FlatOptimizer } from "./flat-optimizer.js";
import type { OptimizerStateDict } from "./state-dict.js";

/** Options of {@link LARC}. */
export interface LARCOptions {
  /** Default 0.02. */
  readonly trustCoefficient?: number;
  /** True: the rate of each parameter is `min(local rate, lr)`; false: `local rate · lr`. Default true. */
  readonly clip?: boolean;
  /** Added to the denominator; at least 2^-126. Default 1e-8. */
  readonly eps?: number;
}

/**
 * apex's LARC (You et al. 2017) around an optimizer: each parameter's gradient is multiplied by `trustCoefficient · |p| / (|g|
 * + weightDecay · |p| + eps)`, and weight decay is added before the inner optimizer's rule. The gradients in memory do not
 * change. It takes two additional launches. Optimizers that adapt each parameter's rate themselves (LAMB, NovoGrad, BertAdam,
 * Adafactor, Muon) are refused.
 *
 * @example
 * const optimizer = new LARC(new SGD(target, flat, { lr: 0.1, momentum: 0.9 }));
 */
export class LARC<B, H extends CommonOptions> {
  readonly optimizer: FlatOptimizer<B, H>;
  readonly stepSupportsAmpScaling: boolean = true;
  readonly #adaptation: GradientAdaptation<H>;

  constructor(optimizer: FlatOptimizer<B, H>, options: LARCOptions = {}) {
    requireOptimizer("LARC", optimizer);
    requireOptions("LARC", options);
    requireNames("LARC", options, ["trustCoefficient", "clip", "eps"]);
    const { trustCoefficient = 0.02, clip = true, eps = 1e-8 } = options;
    requireNumber("trustCoefficient", trustCoefficient, 0);
    requireBoolean("clip", clip);
    requireEps(eps);
    this.optimizer = optimizer;
    this.#adaptation = {
      rule: larcRule,
      apply(group) {
        const scalars: LarcScalars = {
          larcTrust: trustCoefficient,
          larcEps: eps,
          larcDecay: group.weightDecay,
          larcClips: Number(clip),
        };
        return { options: { ...group, weightDecay: 0 }, scalars };
      },
    };
    optimizer.checkAdaptation(this.#adaptation);
  }

  get target(): FlatOptimizer<B, H>["target"] {
    return this.optimizer.target;
  }

  get paramGroups(): readonly ParameterGroup<B, H>[] {
    return this.optimizer.paramGroups;
  }

  addParamGroup(group: GroupInput<B, H>): void {
    this.optimizer.addParamGroup(group);
  }

  parameterNames(): Generator<string> {
    return this.optimizer.parameterNames();
  }

  gradients(): ReturnType<FlatOptimizer<B, H>["gradients"]> {
    return this.optimizer.gradients();
  }

  gradientMarks(): Iterable<MarkedGradient> {
    return this.optimizer.gradientMarks();
  }

  markGradients(mark: GradientMark): void {
    this.optimizer.markGradients(mark);
  }

  step(options: StepOptions<B> = {}): void {
    this.optimizer.step(options, this.#adaptation);
  }

  zeroGrad(): void;
  zeroGrad(...given: readonly unknown[]): void {
    requireNone("zeroGrad()", given);
    this.optimizer.zeroGrad();
  }

  reloadMasters(): void {
    this.optimizer.reloadMasters();
  }

  appliedSteps(): Promise<readonly number[]> {
    return this.optimizer.appliedSteps();
  }

  stateDict(): Promise<OptimizerStateDict> {
    return this.optimizer.stateDict();
  }

  loadStateDict(state: OptimizerStateDict): void {
    this.optimizer.loadStateDict(state);
  }
}
