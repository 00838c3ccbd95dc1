import { scalerRule } from "./presets.js";
import type { StateWords } from "./primitives.js";
import { type ScaleRule, type ScaleState, usedState } from "./rule.js";

/** One loss scale in a checkpoint: its state and its options. */
export interface LossScaleDict extends ScaleState, ScaleRule {}

/** A scaler in a checkpoint: its state, its options, and its number of steps. Plain JSON. */
export interface ScalerStateDict extends LossScaleDict {
  /** Calls of `update()` so far. */
  readonly step: number;
  /** The scales of losses 1, 2, …; absent where there is one scale. */
  readonly losses?: readonly LossScaleDict[];
}

/** The state of torch's GradScaler: `json.dumps(scaler.state_dict())`. */
export interface TorchScalerStateDict {
  readonly scale: number;
  readonly growth_factor: number;
  readonly backoff_factor: number;
  readonly growth_interval: number;
  readonly _growth_tracker: number;
}

const namesOfTorch: Readonly<Record<Exclude<keyof TorchScalerStateDict, "scale">, string>> = {
  growth_factor: "growthFactor",
  backoff_factor: "backoffFactor",
  growth_interval: "growthInterval",
  _growth_tracker: "growthTracker",
};

/** The words of a state. Words that its rule does not use come from `words`, or have their initial values. */
export const wordsOfState = (
  state: ScaleState,
  rule: ScaleRule,
  words: StateWords = [0, 0, 0, rule.hysteresis, 0, 0, 0, 0],
): StateWords => [
  state.scale,
  Math.fround(1 / state.scale),
  state.growthTracker,
  state.hysteresisTracker ?? words[3],
  state.stepsSinceRescale ?? words[4],
  state.overflowsSinceRescale ?? words[5],
  0,
  0,
];

/** Decodes the words of a state. */
export const stateOfWords = (
  [scale, , growthTracker, hysteresisTracker, stepsSinceRescale, overflowsSinceRescale]: StateWords,
  rule: ScaleRule,
): ScaleState =>
  usedState(
    { scale, growthTracker, hysteresisTracker, stepsSinceRescale, overflowsSinceRescale },
    rule,
  );

/**
 * A new scale as a float32.
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

/** One loss's state and rule. */
export interface LossScale {
  readonly state: ScaleState;
  readonly rule: ScaleRule;
}

export const stateDictOf = (
  [first, ...others]: readonly LossScale[],
  step: number,
): ScalerStateDict => ({
  ...dictOf(first as LossScale),
  step,
  ...(others.length > 0 && { losses: others.map(dictOf) }),
});

const dictOf = ({ state, rule }: LossScale): LossScaleDict => ({ ...state, ...rule });

/**
 * Reads a state dictionary, this package's or torch's; missing options and a missing step are taken from `current`.
 *
 * @throws RangeError that names the missing or invalid member.
 */
export function loadedState(
  stateDict: Partial<ScalerStateDict> | TorchScalerStateDict,
  current: { readonly rules: readonly ScaleRule[]; readonly step: number },
): { readonly losses: readonly LossScale[]; readonly step: number } {
  if (Object.keys(stateDict).length === 0) {
    throw new RangeError(
      "the state dictionary is empty, as that of a disabled scaler is: load one of an enabled scaler, or construct this " +
        "one with enabled: false.",
    );
  }
  const { losses = [], ...first } = renamed(stateDict);
  const count = current.rules.length;
  if (losses.length + 1 !== count) {
    throw new RangeError(
      `the state dictionary has ${losses.length + 1} loss scales, but this scaler ${count}: construct it with losses: ${losses.length + 1}.`,
    );
  }
  return {
    losses: current.rules.map((rule, i) =>
      loadedLoss(i === 0 ? first : (losses[i - 1] ?? {}), rule),
    ),
    step: checkedCount("step", first.step ?? current.step, 0),
  };
}

const renamed = (dict: Partial<ScalerStateDict> | TorchScalerStateDict): Partial<ScalerStateDict> =>
  Object.fromEntries(
    Object.entries(dict).map(([name, value]) => [
      Object.hasOwn(namesOfTorch, name) ? namesOfTorch[name as keyof typeof namesOfTorch] : name,
      value,
    ]),
  );

function loadedLoss(dict: Partial<LossScaleDict>, current: ScaleRule): LossScale {
  const options = Object.entries(dict).filter(([name]) => Object.hasOwn(current, name));
  const rule = scalerRule(undefined, { ...current, ...Object.fromEntries(options) });
  const least = {
    growthTracker: -rule.growthDelay,
    hysteresisTracker: -(2 ** 24),
    stepsSinceRescale: 0,
    overflowsSinceRescale: 0,
  };
  const names = ["scale", ...Object.keys(least), "step", ...Object.keys(current)];
  const unknown = Object.keys(dict).find((name) => !names.includes(name));
  if (unknown !== undefined) {
    throw new RangeError(
      `there is no ${JSON.stringify(unknown)} in a scaler's state: it has ${names.join(", ")}; ` +
        "load what stateDict() gave, of this package or of torch.",
    );
  }
  // The check below refuses a missing one.
  const growthTracker = dict.growthTracker as number;
  const { hysteresisTracker = rule.hysteresis } = dict;
  const { stepsSinceRescale = 0, overflowsSinceRescale = 0 } = dict;
  const scale = checkedScale("scale", dict.scale ?? Number.NaN, rule.minScale, rule.maxScale);
  const state = usedState(
    { scale, growthTracker, hysteresisTracker, stepsSinceRescale, overflowsSinceRescale },
    rule,
  );
  for (const [name, count] of Object.entries(least))
    if (Object.hasOwn(state, name)) checkedCount(name, state[name as keyof ScaleState], count);
  return { state, rule };
}

function checkedCount(name: string, count: number | undefined, least: number): number {
  if (count !== undefined && Number.isInteger(count) && count >= least) return count;
  throw new RangeError(`${name} is ${count}: it must be an integer of at least ${least}.`);
}
