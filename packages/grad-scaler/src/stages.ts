import { ScalerStateError } from "./errors.js";
import type { Gradient, ScaledOptimizer } from "./primitives.js";
import type { ScaleRule } from "./rule.js";

/** Whether an overflow skips only the optimizer that met it, or all of them. */
export type SkipMode = "perOptimizer" | "global";

/** What a scaler knows without asking the device. Replaced, never changed, so that a dropped recording can restore it. */
export interface HostState<B> {
  readonly rule: ScaleRule;
  /** Calls of `update()`. */
  readonly step: number;
  /** Whether `scale()` was called since the last update. */
  readonly scaled: boolean;
  /** torch's stages of this step; optimizers that are not in it are READY. */
  readonly stages: ReadonlyMap<ScaledOptimizer<B>, "unscaled" | "stepped">;
  /** Who stepped before the last update, if `scale()` was called then: whoever did not may hold older gradients. */
  readonly steppedBefore: ReadonlySet<ScaledOptimizer<B>> | undefined;
}

/** Optimizers whose overflow flags fit into one float32 of an outcome. */
const MAX_OPTIMIZERS = 24;

export function refuseUnscale<B>({ stages }: HostState<B>, optimizer: ScaledOptimizer<B>): void {
  refuseCrowd(stages, [optimizer]);
  const stage = stages.get(optimizer);
  if (stage === "unscaled") {
    throw new ScalerStateError(
      "double-unscale",
      "unscale() was already called for this optimizer since the last update(): with gradient accumulation call it " +
        "once, after the last micro-step.",
    );
  }
  if (stage === "stepped") {
    throw new ScalerStateError(
      "unscale-after-step",
      "unscale() was called after step() for this optimizer: call it before step(), or not at all, since step() " +
        "unscales what was not.",
    );
  }
}

export function refuseStep<B>(
  { stages }: HostState<B>,
  optimizers: readonly ScaledOptimizer<B>[],
): void {
  refuseCrowd(stages, optimizers);
  const again = (optimizer: ScaledOptimizer<B>, at: number): boolean =>
    stages.get(optimizer) === "stepped" || optimizers.indexOf(optimizer) !== at;
  if (optimizers.some(again)) {
    throw new ScalerStateError(
      "double-step",
      "step() was already called for this optimizer since the last update(): call update() at the end of every step.",
    );
  }
}

export function refuseUpdate<B>({ stages }: HostState<B>): void {
  if (stages.size > 0) return;
  throw new ScalerStateError(
    "no-checks",
    "no inf checks were recorded before update(): call step(optimizer) first; with gradient accumulation call step() " +
      "and update() only after the last micro-step.",
  );
}

export function refuseNewScale<B>({ scaled, stages }: HostState<B>, call: string): void {
  if (!scaled && stages.size === 0) return;
  throw new ScalerStateError(
    "scale-changed",
    `${call} would change the scale in the middle of a step, while gradients carry the old one: call it after ` +
      "update() and before the next scale().",
  );
}

function refuseCrowd<B>(
  stages: HostState<B>["stages"],
  optimizers: readonly ScaledOptimizer<B>[],
): void {
  if (new Set([...stages.keys(), ...optimizers]).size <= MAX_OPTIMIZERS) return;
  throw new ScalerStateError(
    "too-many-optimizers",
    `a scaler serves at most ${MAX_OPTIMIZERS} optimizers in a step: merge some into parameter groups.`,
  );
}

/** The gradients of an optimizer that is READY, once they are known to carry the scale of this step. */
export function checkedGradients<B>(
  { scaled, stages, steppedBefore }: HostState<B>,
  optimizer: ScaledOptimizer<B>,
  skip: SkipMode,
): readonly Gradient<B>[] {
  if (!scaled && steppedBefore !== undefined && !steppedBefore.has(optimizer)) {
    throw new ScalerStateError(
      "scale-changed",
      "the gradients of this optimizer were scaled before the last update(), which may have changed the scale: call " +
        "update() once, after the step of the last optimizer, and give an optimizer that steps less often a scaler of " +
        "its own.",
    );
  }
  if (skip === "global" && [...stages.values()].includes("stepped")) {
    throw new ScalerStateError(
      "late-check",
      'an optimizer has stepped before the gradients of this one were checked, and skip is "global": pass all ' +
        "optimizers at once, step([a, b]), or unscale() each of them first.",
    );
  }
  const gradients = [...optimizer.gradients()];
  if (gradients.length === 0) {
    throw new ScalerStateError(
      "no-gradients",
      "this optimizer has no gradients: call scale(loss).backward() before, for a loss that depends on its parameters.",
    );
  }
  const half = gradients.find(({ dtype }) => dtype === "float16");
  if (half !== undefined) {
    throw new ScalerStateError(
      "float16-gradients",
      `the gradient ${half.name === undefined ? "of a parameter" : `"${half.name}"`} is float16, where unscaled ` +
        "gradients underflow: keep float32 parameters and run the forward pass under autocast, or give the optimizer " +
        "float32 master weights.",
    );
  }
  return gradients;
}
