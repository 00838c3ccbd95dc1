import { initialScales, type KnownScales, refuseMarks } from "./marks.js";
import type { Gradient, ScaledOptimizer } from "./primitives.js";
import { nameOf, refuse } from "./refusal.js";
import type { ScaleRule } from "./rule.js";

/** Whether an overflow skips only the optimizer whose gradients have it, or all optimizers. */
export type SkipMode = "perOptimizer" | "global";

/** The state of a scaler on the host. It is replaced, never changed, so that a dropped recording can restore it. */
export interface HostState<B> {
  /** The rule of each loss. */
  readonly rules: readonly ScaleRule[];
  /** Calls of `update()`. */
  readonly step: number;
  /** The scales with which marks of gradients are compared. */
  readonly scales: KnownScales;
  /** Whether `scale()` was called since the last update. */
  readonly scaled: boolean;
  /** torch's stages of this step; other optimizers are READY. */
  readonly stages: ReadonlyMap<ScaledOptimizer<B>, "unscaled" | "stepped">;
  /** With several losses, the loss whose scale the gradients of an optimizer carry. */
  readonly carried: ReadonlyMap<ScaledOptimizer<B>, number>;
  /** The losses with whose flags the gradients of an optimizer were checked in this step. */
  readonly checked: ReadonlyMap<ScaledOptimizer<B>, readonly number[]>;
  /** The losses for which exponents were counted in this step. */
  readonly counted: ReadonlySet<number>;
  /**
   * The optimizers that stepped before the last update, if `scale()` was called then: others may have older gradients.
   */
  readonly steppedBefore: ReadonlySet<ScaledOptimizer<B>> | undefined;
  /** The open accumulation window, and the part of it that was scaled so far. */
  readonly window: { readonly owner: object; readonly seen: number } | undefined;
}

/** The part of the host state that lasts from one step to the next. */
type LastingState<B> = Pick<HostState<B>, "rules" | "step" | "scales" | "steppedBefore">;

/** Maps and sets of a host state are replaced, never changed, so that all states share the empty ones. */
const noEntries = new Map<never, never>();
const noLosses: ReadonlySet<number> = new Set();

export const initialHostState = <B>(rules: readonly ScaleRule[]): HostState<B> =>
  betweenSteps({ rules, step: 0, scales: initialScales(rules), steppedBefore: undefined });

/** The host state after every update. */
export const betweenSteps = <B>(lasting: LastingState<B>): HostState<B> => ({
  ...lasting,
  scaled: false,
  stages: noEntries,
  carried: noEntries,
  checked: noEntries,
  counted: noLosses,
  window: undefined,
});

/**
 * One optimizer or several, as a list.
 *
 * @throws TypeError where one is missing, or has no `step()` or no `gradients()`.
 */
export function listOf<B, O extends ScaledOptimizer<B>>(
  optimizers: O | readonly O[],
): readonly O[] {
  const list: readonly O[] = Array.isArray(optimizers) ? optimizers : [optimizers as O];
  for (const each of list) {
    const { step, gradients } = (each ?? {}) as Partial<O>;
    if (typeof step !== "function")
      throw new TypeError(`not an optimizer: ${each}; pass one, or a list of them`);
    if (typeof gradients !== "function")
      throw new TypeError(
        "an optimizer without gradients(): a scaler needs this method, which lists them",
      );
  }
  return list;
}

/** Optimizers whose overflow flags fit into one float32 of an outcome. */
const MAX_OPTIMIZERS = 24;

export function refuseUnscale<B>({ stages }: HostState<B>, optimizer: ScaledOptimizer<B>): void {
  refuseCrowd(stages, [optimizer]);
  const stage = stages.get(optimizer);
  if (stage === "unscaled") {
    refuse(
      "double-unscale",
      `${nameOf(optimizer)} was unscaled already since the last update(): call unscale() once, after the last micro-step.`,
    );
  }
  if (stage === "stepped") {
    refuse(
      "unscale-after-step",
      `${nameOf(optimizer)} has stepped already: call unscale() before step(), or leave it out.`,
    );
  }
}

export function refuseClip<B>({ stages }: HostState<B>, optimizer: ScaledOptimizer<B>): void {
  const stage = stages.get(optimizer);
  if (stage === undefined) {
    refuse(
      "clip-before-unscale",
      `the gradients of ${nameOf(optimizer)} still carry the loss scale: call unscale(optimizer) first.`,
    );
  }
  if (stage === "stepped") {
    refuse(
      "clip-after-step",
      `${nameOf(optimizer)} has stepped already: call clip() between unscale() and step().`,
    );
  }
}

export function refuseStep<B>(
  { stages }: HostState<B>,
  optimizers: readonly ScaledOptimizer<B>[],
): void {
  refuseCrowd(stages, optimizers);
  const again = optimizers.find(
    (optimizer, at) => stages.get(optimizer) === "stepped" || optimizers.indexOf(optimizer) !== at,
  );
  if (again !== undefined) {
    refuse(
      "double-step",
      `${nameOf(again)} has stepped already since the last update(): call update() at the end of every step.`,
    );
  }
}

export function refuseUpdate<B>({ stages }: HostState<B>): void {
  if (stages.size > 0) return;
  refuse(
    "no-checks",
    "no optimizer was unscaled or stepped before update(): call step(optimizer) first, both after the last micro-step only.",
  );
}

export function refuseNewScale<B>({ scaled, stages }: HostState<B>, call: string): void {
  if (!scaled && stages.size === 0) return;
  refuse(
    "scale-changed",
    `${call} would change the scale while gradients carry the old one: call it after update() and before the next scale().`,
  );
}

export function refuseSaving<B>({ stages }: HostState<B>): void {
  if (stages.size === 0) return;
  refuse(
    "mid-step",
    "stateDict() would save the middle of a step, from where nothing can go on: call it after update().",
  );
}

/** The rule of a loss, which must exist. */
export function ruleOf<B>({ rules }: HostState<B>, lossId: number): ScaleRule {
  return (
    rules[lossId] ??
    refuse(
      "unknown-loss",
      `there is no loss ${lossId}: by its option losses this scaler has ${rules.length}, from 0 on.`,
    )
  );
}

/** Refuses a loss of several without its optimizers, and one whose gradients would be added to unscaled ones. */
export function refuseLoss<B>(
  host: HostState<B>,
  lossId: number,
  optimizers: readonly ScaledOptimizer<B>[] | undefined,
): void {
  ruleOf(host, lossId);
  if (host.rules.length > 1 && optimizers === undefined) {
    refuse(
      "unknown-loss",
      "with several losses, scale() has to know whose gradients backward() will add to: pass { lossId, optimizers }.",
    );
  }
  const late = optimizers?.find((optimizer) => host.stages.has(optimizer));
  if (late !== undefined) {
    refuse(
      "loss-after-unscale",
      `the gradients of ${nameOf(late)} are unscaled already, and backward() would add scaled ones: call scale() for every ` +
        "loss before unscale() and step().",
    );
  }
}

/** Refuses calls that would interrupt an open accumulation window. */
export function refuseWindow<B>({ window }: HostState<B>): void {
  if (window === undefined) return;
  refuse(
    "open-window",
    "an accumulation window is open: call its scale() and step() until it is full, or its reset().",
  );
}

function refuseCrowd<B>(
  stages: HostState<B>["stages"],
  optimizers: readonly ScaledOptimizer<B>[],
): void {
  if (new Set([...stages.keys(), ...optimizers]).size <= MAX_OPTIMIZERS) return;
  refuse(
    "too-many-optimizers",
    `a scaler serves at most ${MAX_OPTIMIZERS} optimizers in a step: merge some into parameter groups.`,
  );
}

/**
 * Refuses gradients without marks, judging by the order of calls: those that existed before the last update, and those of a step without
 * any scaled loss.
 *
 * @param isIdentity Whether the scale is 1 and cannot change: then unscaled gradients are right, too.
 */
export function refuseUnmarked<B>(
  { scaled, steppedBefore }: HostState<B>,
  optimizer: ScaledOptimizer<B>,
  isIdentity: boolean,
): void {
  if (scaled) return;
  if (steppedBefore !== undefined && !steppedBefore.has(optimizer))
    refuseMarks("scale-changed", `a gradient of ${nameOf(optimizer)}`);
  if (isIdentity) return;
  refuse(
    "not-scaled",
    `no loss was scaled since the last update(), and the gradients of ${nameOf(optimizer)} carry no scale: call ` +
      "scale(loss).backward(), or assumeScaled(optimizer) if they were multiplied by the scale in another way.",
  );
}

/** The gradients of an optimizer that is READY. */
export function gradientsToCheck<B>(
  { stages }: HostState<B>,
  optimizer: ScaledOptimizer<B>,
  { skip, allowNoGrad }: { readonly skip: SkipMode; readonly allowNoGrad: boolean },
): readonly Gradient<B>[] {
  if (skip === "global" && [...stages.values()].includes("stepped")) {
    refuse(
      "late-check",
      `skip is "global", and another optimizer has stepped without ${nameOf(optimizer)}: call step([a, b]) with all at once, or ` +
        "unscale() for each first.",
    );
  }
  const gradients = [...optimizer.gradients()];
  if (gradients.length === 0 && !allowNoGrad) {
    refuse(
      "no-gradients",
      `${nameOf(optimizer)} has no gradients: call scale(loss).backward() with a loss that depends on its parameters, or allow ` +
        "it by the option allowNoGrad.",
    );
  }
  const half = gradients.find(({ dtype }) => dtype === "float16");
  if (half !== undefined) {
    refuse(
      "float16-gradients",
      `the gradient "${half.name ?? "(unnamed)"}" is float16, where unscaled gradients underflow: keep parameters in float32 ` +
        "under autocast, or give the optimizer float32 master weights.",
    );
  }
  return gradients;
}
