import type { AmpPrimitives } from "@halfstep/grad-scaler";
import {
  requireBoolean,
  requireNames,
  requireNumber,
  requireOptions,
  requirePositive,
} from "./checks.js";
import { requireCount } from "./schedules/schedule.js";

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

/** The options of `FP16Optimizer` and its defaults. Throws for unknown ones, or of another kind, by the names that the caller wrote. */
export function fp16Options<B, L>(
  options: FP16OptimizerOptions<B, L>,
): Required<Omit<FP16OptimizerOptions<B, L>, "primitives">> {
  requireOptions("FP16Optimizer", options);
  requireNames("FP16Optimizer", options, [
    "staticLossScale",
    "dynamicLossScale",
    "dynamicLossArgs",
    "verbose",
    "primitives",
  ]);
  const {
    staticLossScale = 1,
    dynamicLossScale = false,
    dynamicLossArgs = {},
    verbose = true,
  } = options;
  requirePositive("staticLossScale", staticLossScale);
  requireBoolean("dynamicLossScale", dynamicLossScale);
  requireBoolean("verbose", verbose);
  requireOptions("dynamicLossArgs", dynamicLossArgs);
  requireNames("dynamicLossArgs", dynamicLossArgs, ["initScale", "scaleFactor", "scaleWindow"]);
  const { initScale = 2 ** 32, scaleFactor = 2, scaleWindow = 1000 } = dynamicLossArgs;
  requirePositive("initScale", initScale);
  requireNumber("scaleFactor", scaleFactor, 1);
  requireCount("scaleWindow", scaleWindow);
  return { staticLossScale, dynamicLossScale, dynamicLossArgs, verbose };
}

/** Throws for options of `backward` that it does not have, or of another kind. */
export function requireBackwardOptions(options: BackwardMasterOptions): void {
  requireOptions("backward", options);
  requireNames("backward", options, ["updateMasterGrads", "retainGraph"]);
  const { updateMasterGrads = true, retainGraph = false } = options;
  requireBoolean("updateMasterGrads", updateMasterGrads);
  requireBoolean("retainGraph", retainGraph);
}
