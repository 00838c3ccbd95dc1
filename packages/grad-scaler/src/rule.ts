import { underflowShift } from "./underflow.js";

/**
 * How a loss scale reacts to steps with and without overflow: plain data, saved next to the state.
 *
 * Scales are float32, to which `scalerRule` rounds them, and factors float64, as in torch. A product of the two is rounded to
 * float64 and then to float32, in every implementation.
 */
export interface ScaleRule {
  /** The scale to start from; positive and finite. */
  readonly initScale: number;
  /** False for a static scale: steps with non-finite gradients are still skipped, but the scale never changes. */
  readonly dynamic: boolean;
  /** The scale is multiplied by this after `growthInterval` clean steps; more than 1. A product that overflows is discarded. */
  readonly growthFactor: number;
  /** The scale is multiplied by this on overflow; between 0 and 1. */
  readonly backoffFactor: number;
  /** Clean steps in a row before the scale grows; an integer from 1 to 2^24. */
  readonly growthInterval: number;
  /** Additional clean steps before the first growth after an overflow and after the start (DeepSpeed's 1). */
  readonly growthDelay: number;
  /** Torch's rule: a growth tracker that is already beyond the interval (loaded, say) never grows the scale again. */
  readonly exactInterval: boolean;
  /** The scale backs off on the overflow with this number since the last refill, and on each later one; 1 is "at once". */
  readonly hysteresis: number;
  /** When the hysteresis tracker is refilled: with every clean step (apex), or only with growth (Megatron). */
  readonly hysteresisRefill: "clean" | "growth";
  /**
   * The scale backs off only where this share of the steps since it last changed has overflowed (fairseq); 0 is "always".
   * At most 1.
   */
  readonly tolerance: number;
  /** Backing off never goes below this; 0 is no floor. */
  readonly minScale: number;
  /** The result of a back-off that would reach or pass the floor: the floor, or the unchanged scale (fairseq). */
  readonly atFloor: "clamp" | "keep";
  /** Whether an overflow at the floor is reported as a `ScaleCollapseError`. */
  readonly raiseAtFloor: boolean;
  /** Growth never goes above this; the largest float32 is no ceiling. */
  readonly maxScale: number;
  /**
   * The share of non-zero gradients that may underflow, in steps of 2^-16; 0 for torch's unconditional doubling. If set,
   * exponents of the gradients are counted on the device every `growthInterval` steps, and growth multiplies by the least power
   * of two that brings the share down to this, if any. See `underflowShift`.
   */
  readonly targetUnderflow: number;
  /** The 16-bit format in which gradients underflow. */
  readonly underflowFormat: "float16" | "bfloat16";
}

/** The state that changes from step to step. Every number is exact in float32. */
export interface ScaleState {
  readonly scale: number;
  /** Clean steps since the scale last grew or an overflow was seen; less `growthDelay` after an overflow. */
  readonly growthTracker: number;
  /** Number of overflows that are still tolerated; absent where `hysteresis` is 1. */
  readonly hysteresisTracker?: number;
  /** Steps since the scale last changed; absent where `tolerance` is 0. */
  readonly stepsSinceRescale?: number;
  /** Overflows since the scale last backed off; absent where `tolerance` is 0. */
  readonly overflowsSinceRescale?: number;
}

/** The state that training starts from: `initScale`, no clean steps yet, full hysteresis. */
export function initialScaleState(rule: ScaleRule): ScaleState {
  return usedState(
    {
      scale: rule.initScale,
      growthTracker: 0 - rule.growthDelay,
      hysteresisTracker: rule.hysteresis,
      stepsSinceRescale: 0,
      overflowsSinceRescale: 0,
    },
    rule,
  );
}

/**
 * The state after a step with or without overflow, as a pure function of float32 numbers. `updateScale` of every
 * `AmpPrimitives` equals it bit for bit.
 *
 * @param exponents The number of scaled gradients of the step for each float32 exponent field, 256 counts. Only for a rule with
 * `targetUnderflow`, which grows only in such steps.
 */
export function nextScaleState(
  state: ScaleState,
  foundInf: boolean,
  rule: ScaleRule,
  exponents?: ArrayLike<number>,
): ScaleState {
  return nextScale(state, foundInf, rule, exponents).state;
}

/** {@link nextScaleState}, and whether the scale should have backed off and could not. */
export function nextScale(
  state: ScaleState,
  foundInf: boolean,
  rule: ScaleRule,
  exponents?: ArrayLike<number>,
): { readonly state: ScaleState; readonly isCollapse: boolean } {
  if (!rule.dynamic) return { state, isCollapse: false };
  const before = completeState(state, rule);
  const [after, isCollapse] = foundInf
    ? afterOverflow(before, rule)
    : [afterCleanStep(before, rule, exponents), false];
  return { state: usedState(after, rule), isCollapse };
}

function afterOverflow(before: CompleteState, rule: ScaleRule): [CompleteState, boolean] {
  const { scale } = before;
  const hysteresisTracker = Math.fround(before.hysteresisTracker - 1);
  const stepsSinceRescale = Math.fround(before.stepsSinceRescale + 1);
  const overflowsSinceRescale = Math.fround(before.overflowsSinceRescale + 1);
  const growthTracker = 0 - rule.growthDelay;
  const isTolerated =
    (rule.hysteresis > 1 && hysteresisTracker > 0) ||
    Math.fround(overflowsSinceRescale / stepsSinceRescale) < rule.tolerance;
  if (isTolerated) {
    const trackers = { growthTracker, hysteresisTracker, stepsSinceRescale, overflowsSinceRescale };
    return [{ scale, ...trackers }, false];
  }
  const next = backedOff(scale, rule);
  const trackers = {
    growthTracker,
    hysteresisTracker,
    stepsSinceRescale: 0,
    overflowsSinceRescale: 0,
  };
  return [{ scale: next, ...trackers }, next === scale];
}

function backedOff(scale: number, { backoffFactor, minScale, atFloor }: ScaleRule): number {
  const smaller = Math.fround(scale * backoffFactor);
  if (atFloor === "keep") return smaller <= minScale ? scale : smaller;
  return Math.max(smaller, minScale);
}

function afterCleanStep(
  before: CompleteState,
  rule: ScaleRule,
  exponents: ArrayLike<number> | undefined,
): CompleteState {
  const { scale, overflowsSinceRescale } = before;
  const successful = Math.fround(before.growthTracker + 1);
  const isDue = rule.exactInterval
    ? successful === rule.growthInterval
    : successful >= rule.growthInterval;
  const factor =
    rule.targetUnderflow > 0 ? pickedFactor(isDue, rule, exponents) : isDue && rule.growthFactor;
  const refills = factor !== false || rule.hysteresisRefill === "clean";
  const hysteresisTracker = refills ? rule.hysteresis : before.hysteresisTracker;
  if (factor === false) {
    const stepsSinceRescale = Math.fround(before.stepsSinceRescale + 1);
    return {
      scale,
      growthTracker: successful,
      hysteresisTracker,
      stepsSinceRescale,
      overflowsSinceRescale,
    };
  }
  const grown = Math.fround(scale * factor);
  const next = Number.isFinite(grown) ? Math.min(grown, rule.maxScale) : scale;
  return {
    scale: factor < 1 ? Math.max(next, rule.minScale) : next,
    growthTracker: 0,
    hysteresisTracker,
    stepsSinceRescale: 0,
    // As in fairseq, growth does not reset them.
    overflowsSinceRescale,
  };
}

/** The power of two from the exponents; false where they were not counted or growth has to wait. */
function pickedFactor(
  isDue: boolean,
  rule: ScaleRule,
  exponents: ArrayLike<number> | undefined,
): number | false {
  if (exponents === undefined) return false;
  const shift = underflowShift(exponents, rule.targetUnderflow, rule.underflowFormat);
  return (isDue || shift < 0) && 2 ** shift;
}

type CompleteState = Required<ScaleState>;

const completeState = (state: ScaleState, { hysteresis }: ScaleRule): CompleteState => ({
  hysteresisTracker: hysteresis,
  stepsSinceRescale: 0,
  overflowsSinceRescale: 0,
  ...state,
});

/** The state without the trackers that the rule does not use. */
export function usedState(state: CompleteState, rule: ScaleRule): ScaleState {
  const { scale, growthTracker, hysteresisTracker, stepsSinceRescale, overflowsSinceRescale } =
    state;
  return {
    scale,
    growthTracker,
    ...(rule.hysteresis > 1 && { hysteresisTracker }),
    ...(rule.tolerance > 0 && { stepsSinceRescale, overflowsSinceRescale }),
  };
}
