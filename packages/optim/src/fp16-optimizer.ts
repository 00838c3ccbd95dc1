import type { Binding } from "@halfstep/device";
import {
  type AmpPrimitives,
  GradScaler,
  ScalerStateError,
  scaledValue,
} from "@halfstep/grad-scaler";
import { allocateResident } from "@halfstep/kernels";
import { copyBits } from "@halfstep/kernels/optimizers";
import type { CommonOptions, ParameterGroup } from "./algorithm.js";
import { innermost } from "./average.js";
import { requireNone, requireOptimizer, requireState, shown } from "./checks.js";
import { clipGradNorm } from "./clip.js";
import type { FlatOptimizer } from "./flat-optimizer.js";
import { gradientsOf, partOf, segmentLength } from "./flat-tensors.js";
import {
  type BackwardMasterOptions,
  type DifferentiableLoss,
  type FP16OptimizerOptions,
  fp16Options,
  type MasterGradNorm,
  requireBackwardOptions,
} from "./fp16-optimizer-options.js";
import { type FP16OptimizerStateDict, mastersOf, withMasters } from "./fp16-optimizer-state.js";
import type { LARC } from "./larc.js";

/** The stage of the open iteration's gradients. */
type Stage =
  /** There are no gradients. */
  | "none"
  /** They carry the scale, and methods that need them may unscale them. */
  | "scaled"
  /** They carry the scale, and the caller must call `updateMasterGrads()` first. */
  | "withheld"
  /** They are unscaled: the gradients of the masters. */
  | "unscaled";

/** A target whose losses are not bindings. */
interface LossTarget<B, L> {
  readonly ampPrimitives?: AmpPrimitives<B, L>;
}

/**
 * apex's `fp16_utils.FP16_Optimizer`: an optimizer of 16-bit parameters with float32 masters, and loss scaling, in one object.
 * The optimizer inside keeps the masters, and a `GradScaler` scales, so that no method waits for the device; methods of apex
 * that return numbers return promises here.
 *
 * Unlike apex, a static scale skips steps that overflow too, the scale is adjusted once a step, in `step()`, and gradients are
 * unscaled where they are first needed.
 *
 * @example
 * const optimizer = new FP16Optimizer(new SGD(runtime.target, flat, { lr: 0.1 }), { dynamicLossScale: true });
 * optimizer.backward(loss);
 * optimizer.step();
 * optimizer.zeroGrad();
 */
export class FP16Optimizer<
  B,
  H extends CommonOptions,
  L extends DifferentiableLoss = DifferentiableLoss,
> {
  readonly optimizer: FlatOptimizer<B, H> | LARC<B, H>;
  /** Scales the losses, and has the outcome of each step. */
  readonly scaler: GradScaler<B, L>;
  #stage: Stage = "none";
  #overflow: Binding<B> | undefined;

  /**
   * @throws RangeError for a scale or window out of range, and for unknown options. TypeError where 16-bit parameters have no masters, or losses cannot
   * be scaled on this target.
   */
  constructor(
    optimizer: FlatOptimizer<B, H> | LARC<B, H>,
    options: FP16OptimizerOptions<B, L> = {},
  ) {
    requireOptimizer("FP16Optimizer", optimizer);
    const { staticLossScale, dynamicLossScale, dynamicLossArgs, verbose } = fp16Options(options);
    const { target } = optimizer;
    const { storages } = innermost(optimizer);
    for (const [group, { params }] of optimizer.paramGroups.entries())
      if (storages[group] === "plain")
        throw new TypeError(
          `${params.segments[0]?.name ?? "a group"} is kept as ${params.dtype} without masters, which FP16Optimizer is for: make the optimizer with storage: "master"`,
        );
    const primitives = options.primitives ?? (target as LossTarget<B, L>).ampPrimitives;
    if (!primitives)
      throw new TypeError(
        "FP16Optimizer does not know how losses are scaled on this target: give it primitives, or make the optimizer on a runtime's target",
      );
    const { initScale, scaleFactor, scaleWindow } = dynamicLossArgs;
    this.optimizer = optimizer;
    this.scaler = new GradScaler(
      primitives,
      dynamicLossScale
        ? {
            preset: "apexFp16Utils",
            ...(initScale !== undefined && { initScale }),
            ...(scaleFactor !== undefined && {
              growthFactor: scaleFactor,
              backoffFactor: 1 / scaleFactor,
            }),
            ...(scaleWindow !== undefined && { growthInterval: scaleWindow }),
          }
        : { preset: "static", initScale: staticLossScale },
    );
    if (verbose) void this.#print();
  }

  /** The groups, whose options may be changed between steps. */
  get paramGroups(): readonly ParameterGroup<B, H>[] {
    return this.optimizer.paramGroups;
  }

  /** Whether the scale is dynamic. */
  get dynamicLossScale(): boolean {
    return this.scaler.rule.dynamic;
  }

  /** The scale now. Waits for the device. */
  get lossScale(): Promise<number> {
    return this.scaler.getScale();
  }

  /** Sets another scale between two steps; a dynamic scale then counts clean steps anew. */
  set lossScale(scale: number) {
    this.scaler.loadStateDict({ scale, growthTracker: 0 });
  }

  /** Whether the gradients of the last step, or those unscaled since, overflowed. Waits for the device. */
  get overflow(): Promise<boolean> {
    const unscaled = this.#stage === "unscaled" && this.scaler.foundInf(this.optimizer);
    if (unscaled) return this.#isSet(flagOf(unscaled));
    const control = innermost(this.optimizer).lastControl;
    return control ? this.#isSet(control).then((applied) => !applied) : Promise.resolve(false);
  }

  /**
   * Scales the loss, in float32, and adds its gradients to those of the parameters.
   *
   * @throws ScalerStateError where the gradients of this iteration have been unscaled already, by `updateMasterGrads`,
   * `clipMasterGrads` or `inspectMasterGradData`. RangeError for unknown options.
   */
  backward(loss: L, options: BackwardMasterOptions = {}): void {
    requireBackwardOptions(options);
    const { updateMasterGrads = true, retainGraph = false } = options;
    const { optimizer: optimizers } = this;
    const scaled = scaledValue(this.scaler.scale(loss, { optimizers }));
    scaled.backward(retainGraph ? { retainGraph } : {});
    this.#become(updateMasterGrads ? "scaled" : "withheld");
  }

  /** Divides the gradients by the scale, after `backward` of all losses of the iteration. A second call has no effect. */
  updateMasterGrads(): void {
    if (this.#stage === "unscaled") return;
    this.scaler.unscale(this.optimizer);
    this.#become("unscaled");
  }

  /**
   * Clips the unscaled gradients by their norm, as torch.nn.utils.clip_grad_norm_ does, without waiting for it.
   *
   * @throws ScalerStateError after a `backward` that left `updateMasterGrads()` to the caller. RangeError for limits that are
   * not positive.
   */
  clipMasterGrads(maxNorm: number, normType = 2): MasterGradNorm {
    this.#unscaleDue("clipMasterGrads()");
    const { target } = this.optimizer;
    const norm = clipGradNorm(this.optimizer, maxNorm, { normType });
    // The scaler clears its flag at the end of the step, possibly before the norm is read.
    this.#overflow ??= flagOf(allocateResident(target, 4));
    const overflow = this.#overflow;
    const found = this.scaler.foundInf(this.optimizer);
    if (found) target.launch(copyBits({ from: flagOf(found), to: overflow }));
    return {
      read: async () => {
        const [value, overflowed] = await Promise.all([norm.read(), this.#isSet(overflow)]);
        return overflowed ? -1 : value;
      },
    };
  }

  /**
   * Updates masters and parameters, or nothing where the gradients overflowed, and adjusts the scale.
   *
   * @throws ScalerStateError without a `backward` since the last step, or where that left `updateMasterGrads()` to the caller.
   */
  step(): undefined;
  /**
   * The same, with gradients that `closure` computes. For a static scale only.
   *
   * @param closure Computes the loss, with `zeroGrad()` and `backward(loss)`, and returns it.
   * @returns what the closure returned.
   * @throws TypeError with a dynamic scale.
   */
  step<R>(closure: () => R): R;
  step<R>(closure?: () => R): R | undefined {
    if (closure !== undefined && typeof closure !== "function")
      throw new TypeError(
        `step(closure) of FP16Optimizer takes a function, not ${shown(closure)}: call step() without arguments`,
      );
    if (closure && this.dynamicLossScale)
      throw new TypeError(
        "step(closure) cannot go with a dynamic loss scale: call backward(loss) and then step(), or use a static scale",
      );
    const result = closure?.();
    if (this.#stage === "none")
      throw new ScalerStateError(
        "no-gradients",
        "step() found no gradients: call backward(loss) on this optimizer, in place of loss.backward(), before each step().",
      );
    this.#refuseWithheld("step()");
    this.scaler.step(this.optimizer);
    this.scaler.update();
    this.#become("none");
    return result;
  }

  /** Clears the gradients. Gradients that were unscaled and not used count as a skipped step. */
  zeroGrad(): void;
  zeroGrad(...given: readonly unknown[]): void {
    requireNone("zeroGrad()", given);
    if (this.#stage === "unscaled") this.scaler.update();
    this.optimizer.zeroGrad();
    this.#become("none");
  }

  /**
   * The unscaled gradients by group and parameter, null where there is none; null for all, and a warning, where they
   * overflowed. Call it between steps of a runtime, before `step()`. Waits for the device.
   */
  async inspectMasterGradData(): Promise<readonly (readonly (Float32Array | null)[])[] | null> {
    this.#unscaleDue("inspectMasterGradData()");
    const { target } = this.optimizer;
    const overflow = this.overflow;
    const groups = this.paramGroups.map(({ params }) =>
      Promise.all(
        params.segments.map(async (segment, i) => {
          if (params.hasGradient && !params.hasGradient(i)) return null;
          const range = { offset: segment.offset, length: segmentLength(segment) };
          return Float32Array.from(await target.read(partOf(gradientsOf(params), range)));
        }),
      ),
    );
    const gradients = await Promise.all(groups);
    if (!(await overflow)) return gradients;
    console.warn(
      "FP16Optimizer.inspectMasterGradData(): the gradients overflowed, and are no numbers to look at.",
    );
    return null;
  }

  /**
   * apex's members. Masters are in `fp32FromFp16` besides the optimizer's own state: what is loaded. Waits for the device.
   *
   * @throws ScalerStateError between `updateMasterGrads()` and `step()`.
   */
  async stateDict(): Promise<FP16OptimizerStateDict> {
    const [lossScaler, overflow, optimizerStateDict] = await Promise.all([
      this.scaler.stateDict(),
      this.overflow,
      this.optimizer.stateDict(),
    ]);
    return {
      lossScaler,
      dynamicLossScale: this.dynamicLossScale,
      overflow,
      firstClosureCallThisStep: true,
      optimizerStateDict,
      fp32FromFp16: mastersOf(optimizerStateDict),
    };
  }

  /**
   * Continues from a state, between steps. Load the model's parameters first.
   *
   * @throws OptimizerStateError where the state is of another optimizer or model. RangeError for an impossible scale.
   */
  loadStateDict(state: FP16OptimizerStateDict): void {
    requireState("FP16Optimizer", state, ["optimizerStateDict", "fp32FromFp16", "lossScaler"]);
    this.optimizer.loadStateDict(withMasters(state.optimizerStateDict, state.fp32FromFp16));
    this.scaler.loadStateDict(state.lossScaler);
  }

  #unscaleDue(call: string): void {
    this.#refuseWithheld(call);
    this.updateMasterGrads();
  }

  #refuseWithheld(call: string): void {
    if (this.#stage === "withheld")
      throw new ScalerStateError(
        "clip-before-unscale",
        `${call} would use gradients that still carry the loss scale: the last backward() had updateMasterGrads: false, so call updateMasterGrads() first.`,
      );
  }

  #become(stage: Stage): void {
    const before = this.#stage;
    this.#stage = stage;
    this.optimizer.target.onRollback?.(() => {
      this.#stage = before;
    });
  }

  async #isSet(flag: Binding<B>): Promise<boolean> {
    const [value] = await this.optimizer.target.read(flag);
    return value !== 0;
  }

  /** Prints apex's message for each skipped step. */
  async #print(): Promise<void> {
    try {
      for await (const { status, scaleAfter } of this.scaler.outcomes())
        if (status === "skipped")
          console.log(
            `Gradient overflow.  Skipping step, ${this.dynamicLossScale ? `reducing loss scale to ${scaleAfter}` : `loss scale stays ${scaleAfter}`}`,
          );
    } catch (error) {
      // Calls of scaler.drain() reject with it, too.
      console.warn(error instanceof Error ? error.message : error);
    }
  }
}

const flagOf = <B>(buffer: B): Binding<B> => ({ buffer, offset: 0, length: 1, dtype: "float32" });
