import type { AmpPrimitives } from "@halfstep/grad-scaler";

/** A loss that can compute gradients, such as a tensor of `@halfstep/tensor`. */
export interface DifferentiableLoss {
  backward(options?: { readonly retainGraph?: boolean }): void;
}

/** apex's `dynamic_loss_args`. */
export interface DynamicLossArgs {
  /** Default 2^32. */
  readonly initScale?: number;
  /** The divisor of the scale on overflow, and its factor after a window. Default 2. */
  readonly scaleFactor?: number;
  /** Steps in a row without overflow before the scale grows. Default 1000. */
  readonly scaleWindow?: number;
}

/** Options of `FP16Optimizer`. */
export interface FP16OptimizerOptions<B, L> {
  /** Default 1. */
  readonly staticLossScale?: number;
  /** Adjusts the scale dynamically; `staticLossScale` is then ignored. Default false. */
  readonly dynamicLossScale?: boolean;
  readonly dynamicLossArgs?: DynamicLossArgs;
  /** Whether skipped steps are printed when the host reads their outcomes. Default true, as in apex. */
  readonly verbose?: boolean;
  /**
   * The primitives of loss scaling. Required only on targets without their own; runtimes of `@halfstep/tensor` have
   * them.
   */
  readonly primitives?: AmpPrimitives<B, L>;
}

/** The norm of `FP16Optimizer.clipMasterGrads`. */
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
