import type { AmpPrimitives } from "@halfstep/grad-scaler";

/** What a loss has to know: how to compute gradients. A tensor of `@halfstep/tensor` does. */
export interface DifferentiableLoss {
  backward(options?: { readonly retainGraph?: boolean }): void;
}

/** apex's `dynamic_loss_args`. */
export interface DynamicLossArgs {
  /** Default 2^32. */
  readonly initScale?: number;
  /** What the scale is divided by on overflow and multiplied by after a window. Default 2. */
  readonly scaleFactor?: number;
  /** Steps in a row without overflow before the scale grows. Default 1000. */
  readonly scaleWindow?: number;
}

/** Options of `FP16Optimizer`. */
export interface FP16OptimizerOptions<B, L> {
  /** Default 1. */
  readonly staticLossScale?: number;
  /** Finds its own scale; `staticLossScale` then counts for nothing. Default false. */
  readonly dynamicLossScale?: boolean;
  readonly dynamicLossArgs?: DynamicLossArgs;
  /** Whether skipped steps are printed, as the host learns of them. Default true, as in apex. */
  readonly verbose?: boolean;
  /** How losses are scaled. Needed only on targets that do not know: a runtime of `@halfstep/tensor` does. */
  readonly primitives?: AmpPrimitives<B, L>;
}

/** The norm that `FP16Optimizer.clipMasterGrads` has clipped by. */
export interface MasterGradNorm {
  /** The norm before clipping, or -1 where the gradients overflowed. Waits for the device. */
  read(): Promise<number>;
}

/** Options of a backward pass into master gradients. */
export interface BackwardMasterOptions {
  /** False: more losses follow, and `updateMasterGrads()` will be called after the last. Default true. */
  readonly updateMasterGrads?: boolean;
  readonly retainGraph?: boolean;
}
