import { OutcomeReader, type OutcomeSchedule } from "./outcome-reader.js";
import { OutcomeLog, type OutcomeStream } from "./outcomes.js";
import {
  type AmpPrimitives,
  OUTCOME_RING,
  OUTCOME_WORDS,
  type ScaledOptimizer,
  STATE_WORDS,
} from "./primitives.js";
import {
  initialScaleState,
  type ScaleRule,
  type ScalerPreset,
  type ScaleState,
  scalerRule,
} from "./rule.js";
import {
  checkedGradients,
  type HostState,
  refuseNewScale,
  refuseStep,
  refuseUnscale,
  refuseUpdate,
  type SkipMode,
} from "./stages.js";
import {
  checkedNewScale,
  loadedState,
  type ScalerStateDict,
  stateDictOf,
  stateWords,
} from "./state-dict.js";
import type { StepOutcome } from "./step-outcome.js";

/** A rule's numbers replace those of the preset; see {@link ScaleRule}. */
export interface GradScalerOptions extends Partial<ScaleRule> {
  /** Whose rule to start from; absent: torch's constants with a floor of 2^-16. */
  readonly preset?: ScalerPreset;
  /** Whether an overflow skips only the optimizer that met it (torch), or all of them. Default `"perOptimizer"`. */
  readonly skip?: SkipMode;
  /** False makes every method the identity. Default true. */
  readonly enabled?: boolean;
  /**
   * When outcomes are read from the device on their own; default after 16 steps or 250 ms. With `false` only `drain()`
   * reads them: more than 256 steps apart, outcomes are lost (`lostBefore`).
   */
  readonly outcomeSchedule?: OutcomeSchedule | false;
}

/** What a scaler keeps on the device. */
interface Resident<B, L> {
  readonly primitives: AmpPrimitives<B, L>;
  readonly state: B;
  readonly outcomes: B;
  readonly reader: OutcomeReader;
}

/**
 * Loss scaling as torch's `GradScaler` does it, with the scale, the overflow flags and the decision to skip resident on
 * the device: no method waits for it, except those that return a promise.
 *
 * `B` is the type of buffers and `L` that of losses; see {@link AmpPrimitives}.
 *
 * @example
 * scaler.scale(loss).backward();
 * scaler.step(optimizer);
 * scaler.update();
 * optimizer.zeroGrad();
 */
export class GradScaler<B, L = B> {
  readonly #skip: SkipMode;
  readonly #resident: Resident<B, L> | undefined;
  readonly #log: OutcomeLog = new OutcomeLog();
  readonly #foundInfs: WeakMap<object, B> = new WeakMap();
  #host: HostState<B>;

  /** @throws RangeError naming the option that is out of range; see {@link scalerRule}. */
  constructor(primitives: AmpPrimitives<B, L>, options: GradScalerOptions = {}) {
    const {
      preset,
      skip = "perOptimizer",
      enabled = true,
      outcomeSchedule = { steps: 16, milliseconds: 250 },
      ...overrides
    } = options;
    if (skip !== "perOptimizer" && skip !== "global") {
      throw new RangeError(`skip is ${skip}: it must be "perOptimizer" or "global".`);
    }
    const rule = scalerRule(preset, overrides);
    this.#skip = skip;
    this.#host = { rule, step: 0, scaled: false, stages: new Map(), steppedBefore: undefined };
    if (!enabled) return;
    const state = primitives.allocate(STATE_WORDS);
    primitives.writeState(state, stateWords(initialScaleState(rule), rule));
    const outcomes = primitives.allocate(OUTCOME_RING * OUTCOME_WORDS);
    const read = (): Promise<Float32Array> => primitives.read(outcomes);
    const reader = new OutcomeReader(read, this.#log, outcomeSchedule);
    this.#resident = { primitives, state, outcomes, reader };
  }

  /** False where the scaler was constructed with `enabled: false`. */
  get enabled(): boolean {
    return this.#resident !== undefined;
  }

  /** The rule in force: options, not state. */
  get rule(): ScaleRule {
    return this.#host.rule;
  }

  /** `loss × scale`, in float32 whatever the loss's dtype. With several losses, scale each. */
  scale(loss: L): L;
  scale(losses: readonly L[]): L[];
  scale(loss: L | readonly L[]): L | L[] {
    if (Array.isArray(loss)) return loss.map((each: L) => this.scale(each));
    const resident = this.#resident;
    if (resident === undefined) return loss as L;
    if (!this.#host.scaled) this.#change({ scaled: true });
    return resident.primitives.scaleLoss(loss as L, resident.state);
  }

  /**
   * Divides the gradients by the scale in place, so that they can be clipped or looked at before `step`. Otherwise it
   * need not be called.
   *
   * @throws ScalerStateError on the second call since the last update, after `step`, without gradients, and for float16
   * gradients.
   */
  unscale(optimizer: ScaledOptimizer<B>): void {
    const resident = this.#resident;
    if (resident === undefined) return;
    refuseUnscale(this.#host, optimizer);
    const gradients = checkedGradients(this.#host, optimizer, this.#skip);
    this.#enter(optimizer, "unscaled");
    resident.primitives.unscale(gradients, resident.state, this.#flag(resident, optimizer));
  }

  /**
   * Steps an optimizer, or several, where its gradients are finite; on the device, so the host goes on either way.
   * Gradients that `unscale` has not seen are unscaled here: in place, or inside the optimizer's own step where it
   * {@link ScaledOptimizer.stepSupportsAmpScaling | supports that}, which leaves them scaled in memory as torch's fused
   * optimizers do. With `skip: "global"` and several optimizers, pass them all at once.
   *
   * @throws ScalerStateError on the second call since the last update, and as {@link unscale}.
   */
  step(optimizers: ScaledOptimizer<B> | readonly ScaledOptimizer<B>[]): void {
    const all: readonly ScaledOptimizer<B>[] = "step" in optimizers ? [optimizers] : optimizers;
    const resident = this.#resident;
    if (resident === undefined) {
      for (const optimizer of all) optimizer.step();
      return;
    }
    const { primitives, state } = resident;
    refuseStep(this.#host, all);
    const ready = all.filter((optimizer) => !this.#host.stages.has(optimizer));
    const gradients = ready.map((optimizer) => checkedGradients(this.#host, optimizer, this.#skip));
    const fused = new Set(ready.filter((optimizer) => optimizer.stepSupportsAmpScaling));
    for (const [i, optimizer] of ready.entries()) {
      this.#enter(optimizer, "unscaled");
      const foundInf = this.#flag(resident, optimizer);
      const own = gradients[i] ?? [];
      if (fused.has(optimizer)) primitives.check(own, foundInf);
      else primitives.unscale(own, state, foundInf);
    }
    for (const optimizer of all) {
      const foundInf = this.#flag(resident, optimizer);
      optimizer.step(fused.has(optimizer) ? { foundInf, gradScale: state } : { foundInf });
      this.#enter(optimizer, "stepped");
    }
  }

  /**
   * Ends the step: adjusts the scale by the rule, or sets it to `newScale`, and makes the optimizers ready for the next.
   *
   * @throws ScalerStateError where nothing was unscaled or stepped, or a new scale would come between micro-steps.
   * @throws RangeError for a `newScale` outside `minScale…maxScale`.
   */
  update(newScale?: number): void {
    const resident = this.#resident;
    if (resident === undefined) return;
    const { rule, step, scaled, stages } = this.#host;
    const scale = newScale === undefined ? undefined : checkedNewScale(newScale, rule);
    if (scale === undefined) refuseUpdate(this.#host);
    else if (stages.size === 0) refuseNewScale(this.#host, "update(newScale)");
    const counts = stages.size > 0;
    const optimizers = [...stages.keys()];
    const stepped = optimizers.filter((optimizer) => this.#isStepped(optimizer));
    this.#change({
      step: counts ? step + 1 : step,
      scaled: false,
      stages: new Map(),
      steppedBefore: scaled ? new Set(stepped) : undefined,
    });
    const tag = counts ? this.#announce(resident, step + 1, stages) : 0;
    resident.primitives.updateScale({
      state: resident.state,
      foundInfs: [...new Set(optimizers.map((each) => this.#flag(resident, each)))],
      rule,
      ...(scale === undefined ? {} : { newScale: scale }),
      outcomes: resident.outcomes,
      tag,
    });
  }

  /** The scale now; 1 where disabled. Waits for the device. */
  async getScale(): Promise<number> {
    return (await this.#readState()).scale;
  }

  /**
   * The device flag that guards this optimizer's step: one float32, not 0 where a gradient was infinite or NaN. It
   * holds from `unscale` or `step` to `update`, which clears it. Undefined where disabled.
   */
  foundInf(optimizer: ScaledOptimizer<B>): B | undefined {
    return this.#resident && this.#flag(this.#resident, optimizer);
  }

  /** The outcome of every step as it becomes known, from the first that no {@link drain} has returned. */
  outcomes(): OutcomeStream {
    return this.#log.stream();
  }

  /**
   * Reads what the device still holds and returns the outcomes since the last call, in order.
   *
   * @throws ScaleCollapseError when a step was skipped at the floor of the scale; it carries the outcomes.
   */
  async drain(): Promise<readonly StepOutcome[]> {
    await this.#resident?.reader.read();
    return this.#log.take();
  }

  /** Options and state, ready for JSON; `{}` where disabled. Waits for the device. */
  async stateDict(): Promise<ScalerStateDict | Record<string, never>> {
    if (this.#resident === undefined) return {};
    const { rule, step } = this.#host;
    return stateDictOf(await this.#readState(), rule, step);
  }

  /**
   * Continues from a state. As in torch, options that were saved replace those of this scaler.
   *
   * @throws RangeError for an empty or impossible state. ScalerStateError between `scale()` and `update()`.
   */
  loadStateDict(stateDict: Partial<ScalerStateDict>): void {
    const resident = this.#resident;
    if (resident === undefined) return;
    const { state, rule, step } = loadedState(stateDict, this.#host);
    refuseNewScale(this.#host, "loadStateDict()");
    this.#change({ rule, step, steppedBefore: undefined });
    resident.primitives.writeState(resident.state, stateWords(state, rule));
  }

  async #readState(): Promise<ScaleState> {
    const resident = this.#resident;
    if (resident === undefined) return { scale: 1, growthTracker: 0 };
    const { rule } = this.#host;
    const [scale = 0, , growthTracker = 0, hysteresisTracker = 0] = await resident.primitives.read(
      resident.state,
    );
    return rule.hysteresis > 1
      ? { scale, growthTracker, hysteresisTracker }
      : { scale, growthTracker };
  }

  #flag(resident: Resident<B, L>, optimizer: ScaledOptimizer<B>): B {
    const owner = this.#skip === "global" ? this : optimizer;
    const known = this.#foundInfs.get(owner);
    if (known !== undefined) return known;
    const foundInf = resident.primitives.allocate(1);
    this.#foundInfs.set(owner, foundInf);
    return foundInf;
  }

  #isStepped(optimizer: ScaledOptimizer<B>): boolean {
    return this.#host.stages.get(optimizer) === "stepped";
  }

  #enter(optimizer: ScaledOptimizer<B>, stage: "unscaled" | "stepped"): void {
    this.#change({ stages: new Map(this.#host.stages).set(optimizer, stage) });
  }

  #announce(resident: Resident<B, L>, step: number, stages: HostState<B>["stages"]): number {
    const { reader, primitives } = resident;
    const { rule } = this.#host;
    primitives.onRollback?.(() => reader.forget());
    return reader.expect({
      step,
      stepped: [...stages.values()].map((stage) => stage === "stepped"),
      together: this.#skip === "global",
      floor: rule.dynamic ? rule.minScale : undefined,
    });
  }

  #change(changes: Partial<HostState<B>>): void {
    const before = this.#host;
    this.#resident?.primitives.onRollback?.(() => {
      this.#host = before;
    });
    this.#host = { ...before, ...changes };
  }
}
