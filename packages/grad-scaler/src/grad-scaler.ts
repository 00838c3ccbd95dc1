import { scalesGiven } from "./marks.js";
import type { OutcomeSchedule } from "./outcome-reader.js";
import { OutcomeLog, type OutcomeStream } from "./outcomes.js";
import { type ScalerPreset, scalerRule } from "./presets.js";
import type { AmpPrimitives, ScaledOptimizer } from "./primitives.js";
import { demand, demandDone, demandFlag, demandInteger, demandOptions } from "./refusal.js";
import { Resident } from "./resident.js";
import type { ScaleRule } from "./rule.js";
import { asScaled, type Scaled } from "./scaled.js";
import {
  listOf,
  refuseClip,
  refuseNewScale,
  refuseSaving,
  refuseWindow,
  ruleOf,
  type SkipMode,
} from "./stages.js";
import {
  loadedState,
  type ScalerStateDict,
  stateDictOf,
  type TorchScalerStateDict,
} from "./state-dict.js";
import type { StepOutcome } from "./step-outcome.js";
import { type LossOptions, Stepper } from "./stepper.js";

/** Options of a scaler. Members of {@link ScaleRule} replace those of the preset. */
export interface GradScalerOptions extends Partial<ScaleRule> {
  /** The system whose rule is the base. Default: torch's constants with a floor of 2^-16. */
  readonly preset?: ScalerPreset;
  /**
   * The number of losses with a scale of their own (apex's `num_losses`), or the overrides of each loss's rule. Default 1: all
   * losses share one, as in torch.
   */
  readonly losses?: number | readonly Partial<ScaleRule>[];
  /** Whether an overflow skips only the optimizer whose gradients have it (torch), or all optimizers. Default `"perOptimizer"`. */
  readonly skip?: SkipMode;
  /** Whether an optimizer may step without any gradient; such a step does nothing. Default false. */
  readonly allowNoGrad?: boolean;
  /** False makes every method the identity. Default true. */
  readonly enabled?: boolean;
  /**
   * Whether outcomes have the norm of the gradients. Default false. The check sums it. Without it, kernels that store gradients may
   * check them, so that no launch reads all of them again.
   */
  readonly gradientNorm?: boolean;
  /**
   * When outcomes are read from the device automatically. Default: after 16 steps or 250 ms. With `false` only `drain()` reads them:
   * more than 256 steps apart, outcomes are lost (`lostBefore`).
   */
  readonly outcomeSchedule?: OutcomeSchedule | false;
}

/** The inside of a scaler, for functions of this package that a program imports only if it needs them. */
export let stepperOf: <B, L>(scaler: GradScaler<B, L>) => Stepper<B, L>;

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
  static {
    stepperOf = (scaler) => scaler.#stepper;
  }

  readonly #stepper: Stepper<B, L>;
  readonly #log: OutcomeLog = new OutcomeLog();

  /**
   * @throws RangeError that names the option that is out of range or unknown; see {@link scalerRule}. TypeError where an option
   * needs an optional primitive that is missing, or where there are no primitives.
   */
  constructor(primitives: AmpPrimitives<B, L>, options: GradScalerOptions = {}) {
    const {
      preset,
      losses = 1,
      skip = "perOptimizer",
      allowNoGrad = false,
      enabled = true,
      gradientNorm = false,
      outcomeSchedule: schedule = { steps: 16, milliseconds: 250 },
      ...overrides
    } = options;
    for (const [name, value] of Object.entries({ enabled, allowNoGrad, gradientNorm }))
      demandFlag(name, value);
    if (enabled && typeof primitives?.allocate !== "function") {
      throw new TypeError(
        "GradScaler takes primitives: pass ampPrimitives(runtime) of @halfstep/tensor, ampPrimitives(target) of @halfstep/kernels, or float32Primitives.",
      );
    }
    demand("skip", skip, skip === "perOptimizer" || skip === "global", "perOptimizer or global");
    const [count, own] = typeof losses === "number" ? [losses, []] : [losses.length, losses];
    demandInteger("losses", count, 1);
    const rules = Array.from({ length: count }, (_, i) =>
      scalerRule(preset, { ...overrides, ...own[i] }),
    );
    const resident = enabled
      ? new Resident(primitives, rules, { log: this.#log, schedule, gradientNorm })
      : undefined;
    this.#stepper = new Stepper(primitives, resident, rules, { skip, allowNoGrad });
  }

  /** The stepper, unless an accumulation window is open. */
  get #free(): Stepper<B, L> {
    refuseWindow(this.#stepper.host);
    return this.#stepper;
  }

  /** False where the scaler was constructed with `enabled: false`. */
  get enabled(): boolean {
    return this.#stepper.resident !== undefined;
  }

  /** The rule in force, of the first loss where there are several: options, not state. */
  get rule(): ScaleRule {
    return this.#stepper.host.rules[0] as ScaleRule;
  }

  /**
   * `loss × scale`, in float32 for every dtype of the loss. With several losses, scale each.
   *
   * @throws ScalerStateError where an accumulation window is open, and with several loss scales where `optimizers` is
   * missing or their gradients are unscaled already. TypeError for unknown options.
   */
  scale(loss: L, options?: LossOptions<B>): Scaled<L>;
  scale(losses: readonly L[], options?: LossOptions<B>): Scaled<L>[];
  scale(loss: L | readonly L[], options: LossOptions<B> = {}): Scaled<L> | Scaled<L>[] {
    demandOptions("scale()", options, ["lossId", "optimizers"]);
    const stepper = this.#free;
    const scaled = (each: L): Scaled<L> => asScaled(stepper.scale(each, options));
    return Array.isArray(loss) ? loss.map(scaled) : scaled(loss as L);
  }

  /**
   * Divides the gradients by the scale in place, to clip or inspect them before `step`. Otherwise it need not be called.
   *
   * @throws ScalerStateError on the second call since the last update, after `step`, without gradients, for float16 gradients, and
   * for gradients that cannot carry the scale: without marks, where neither `scale()` nor `assumeScaled()` was called since the last update.
   */
  unscale(optimizer: ScaledOptimizer<B>): void {
    for (const each of listOf(optimizer)) this.#free.unscale(each);
  }

  /**
   * Calls `clip(optimizer)` with unscaled gradients, and returns its result.
   *
   * @throws ScalerStateError where they still carry the scale, or were used already. TypeError where `clip` returns a promise or a
   * generator.
   */
  clip<O extends ScaledOptimizer<B>, R>(optimizer: O, clip: (optimizer: O) => R): R {
    const stepper = this.#free;
    if (this.enabled) refuseClip(stepper.host, optimizer);
    stepper.requireUnscaled(optimizer);
    return demandDone("scaler.clip()", clip(optimizer));
  }

  /**
   * Steps an optimizer, or several, if its gradients are finite. The device decides, and the host continues in either case.
   * Gradients that were not unscaled before are unscaled here: in place, or inside the optimizer's own step where it {@link
   * ScaledOptimizer.stepSupportsAmpScaling | supports that}, which leaves them scaled in memory as torch's fused optimizers do. With
   * `skip: "global"` and several optimizers, pass them all at once.
   *
   * @throws ScalerStateError on the second call since the last update, and as {@link unscale}. TypeError for a closure.
   */
  step(
    optimizers: ScaledOptimizer<B> | readonly ScaledOptimizer<B>[],
    ...closure: readonly never[]
  ): void {
    if (closure.length > 0) {
      throw new TypeError(
        "scaler.step() takes no closure: call scale(loss).backward() first, and then step(optimizer).",
      );
    }
    this.#free.step(listOf(optimizers));
  }

  /**
   * Ends the step: adjusts the scale by the rule, or sets it to `newScale`, and makes the optimizers ready for the next step. With
   * several losses, it adjusts the scales of those that took part, or sets all.
   *
   * @throws ScalerStateError where nothing was unscaled or stepped, or a new scale would come between micro-steps.
   * @throws RangeError for a `newScale` outside `minScale…maxScale`.
   */
  update(newScale?: number): void {
    this.#free.update(newScale);
  }

  /**
   * Declares that the gradients of an optimizer carry the scale, for gradients that were not computed by `scale(loss).backward()`:
   * those of a custom kernel, or of a backward pass from gradients that were multiplied by hand.
   *
   * @throws ScalerStateError where they are unscaled already. TypeError for unknown options.
   */
  assumeScaled(optimizer: ScaledOptimizer<B>, options: { lossId?: number } = {}): void {
    demandOptions("assumeScaled()", options, ["lossId"]);
    this.#free.assumeScaled(optimizer, options.lossId ?? 0);
  }

  /** The scale now; 1 where disabled. Waits for the device. */
  async getScale(lossId = 0): Promise<number> {
    const { host, resident } = this.#stepper;
    const rule = ruleOf(host, lossId);
    return resident ? (await resident.readState(lossId, rule)).scale : 1;
  }

  /**
   * The device state of a loss's scale, float32 `[scale, 1 / scale, …]`, for code that reads gradients before they are unscaled. Undefined
   * where disabled.
   */
  gradScale(lossId = 0): B | undefined {
    return this.#stepper.resident?.loss(lossId).state;
  }

  /**
   * The device flag that guards this optimizer's step: one float32, not 0 where a gradient was infinite or NaN. It is valid from
   * `unscale` or `step` to `update`, which clears it. Undefined where disabled.
   */
  foundInf(optimizer: ScaledOptimizer<B>): B | undefined {
    const { resident } = this.#stepper;
    return resident && this.#stepper.guard(resident, optimizer);
  }

  /** A stream of the outcome of every step as it becomes known, from the first that no {@link drain} has returned. */
  outcomes(): OutcomeStream {
    return this.#log.stream();
  }

  /**
   * Reads the remaining outcomes from the device and returns those since the last call, in order.
   *
   * @throws ScaleCollapseError when a step was skipped at the floor of the scale; it carries the outcomes.
   */
  async drain(): Promise<readonly StepOutcome[]> {
    await this.#stepper.resident?.reader.read();
    return this.#log.take();
  }

  /**
   * Options and state, ready for JSON; `{}` where disabled. Waits for the device.
   *
   * @throws ScalerStateError between the step of an optimizer and `update()`.
   */
  async stateDict(): Promise<ScalerStateDict | Record<string, never>> {
    const { resident } = this.#stepper;
    if (resident === undefined) return {};
    refuseSaving(this.#stepper.host);
    const { rules, step } = this.#stepper.host;
    const losses = rules.map(async (rule, i) => ({
      rule,
      state: await resident.readState(i, rule),
    }));
    return stateDictOf(await Promise.all(losses), step);
  }

  /**
   * Continues from a state of this package or of torch's scaler. As in torch, saved options replace those of this scaler.
   *
   * @throws RangeError for an empty or impossible state. ScalerStateError between `scale()` and `update()`. An
   * error of the runtime within a step.
   */
  loadStateDict(stateDict: Partial<ScalerStateDict> | TorchScalerStateDict): void {
    const { resident } = this.#stepper;
    if (resident === undefined) return;
    this.#stepper.primitives.requireNoStep?.("loadStateDict() of a scaler");
    const { losses, step } = loadedState(stateDict, this.#stepper.host);
    refuseNewScale(this.#stepper.host, "loadStateDict()");
    const given = losses.map(({ state }) => state.scale);
    const scales = scalesGiven(this.#stepper.host.scales, given);
    const rules = losses.map(({ rule }) => rule);
    this.#stepper.change({ rules, step, scales, steppedBefore: undefined });
    for (const [i, { state, rule }] of losses.entries()) resident.writeState(i, state, rule);
  }
}
