import type { StateWords } from "./primitives.js";
import { type ScaleRule, type ScaleState, scalerRule } from "./rule.js";

/** What a checkpoint holds of a scaler: its state, its options, and how many steps it has counted. Plain JSON. */
export interface ScalerStateDict extends ScaleState, ScaleRule {
  /** Calls of `update()` so far. */
  readonly step: number;
}

export const stateWords = (state: ScaleState, rule: ScaleRule): StateWords => [
  state.scale,
  Math.fround(1 / state.scale),
  state.growthTracker,
  state.hysteresisTracker ?? rule.hysteresis,
];

export const stateDictOf = (state: ScaleState, rule: ScaleRule, step: number): ScalerStateDict => ({
  ...state,
  ...rule,
  step,
});

/**
 * A scale to go on with, as a float32.
 *
 * @throws RangeError unless it is positive and within `minScale…maxScale`.
 */
export const checkedNewScale = (scale: number, rule: ScaleRule): number =>
  checkedScale("newScale", scale, Math.max(rule.minScale, 2 ** -149), rule.maxScale);

function checkedScale(name: string, scale: number, least: number, most: number): number {
  const rounded = Math.fround(scale);
  if (rounded >= least && rounded <= most) return rounded;
  throw new RangeError(`${name} is ${scale}: it must be a number from ${least} to ${most}.`);
}

/**
 * Reads a state dictionary; what it lacks of options and step is taken from `current`.
 *
 * @throws RangeError naming what is missing or impossible.
 */
export function loadedState(
  stateDict: Partial<ScalerStateDict>,
  current: { readonly rule: ScaleRule; readonly step: number },
): { readonly state: ScaleState; readonly rule: ScaleRule; readonly step: number } {
  if (Object.keys(stateDict).length === 0) {
    throw new RangeError(
      "the state dictionary is empty, as that of a disabled scaler is: load one of an enabled scaler, or construct this " +
        "one with enabled: false.",
    );
  }
  const rule = scalerRule(undefined, { ...current.rule, ...stateDict });
  const scale = checkedScale("scale", stateDict.scale ?? Number.NaN, rule.minScale, rule.maxScale);
  const growthTracker = checkedCount("growthTracker", stateDict.growthTracker, 0);
  const step = checkedCount("step", stateDict.step ?? current.step, 0);
  if (rule.hysteresis === 1) return { state: { scale, growthTracker }, rule, step };
  const hysteresisTracker = checkedCount(
    "hysteresisTracker",
    stateDict.hysteresisTracker ?? rule.hysteresis,
    -(2 ** 24),
  );
  return { state: { scale, growthTracker, hysteresisTracker }, rule, step };
}

function checkedCount(name: string, count: number | undefined, least: number): number {
  if (count !== undefined && Number.isInteger(count) && count >= least) return count;
  throw new RangeError(`${name} is ${count}: it must be an integer of at least ${least}.`);
}
