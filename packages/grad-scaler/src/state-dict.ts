import { MAX_COUNT, ruleWith } from "./presets.js";
import type { StateWords } from "./primitives.js";
import { demand, demandInteger } from "./refusal.js";
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
 * A scale as a float32.
 *
 * @throws RangeError unless it is within these limits.
 */
export function checkedScale(name: string, scale: number, least: number, most: number): number {
  const isNumber = typeof scale === "number";
  const rounded = isNumber ? Math.fround(scale) : Number.NaN;
  demand(
    name,
    isNumber ? scale : JSON.stringify(scale),
    rounded >= least && rounded <= most,
    `a number from ${least} to ${most}`,
  );
  return rounded;
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
  if (typeof stateDict !== "object" || stateDict === null || "then" in stateDict)
    throw new TypeError(
      stateDict
        ? "the state is a promise, or no state: write loadStateDict(await scaler.stateDict())"
        : `the state is ${String(stateDict)}: load what stateDict() gave`,
    );
  if (Object.keys(stateDict).length === 0) {
    throw new RangeError(
      "the state dictionary is empty, as that of a disabled scaler is: load another, or construct this scaler with enabled: false.",
    );
  }
  const { losses = [], step = current.step, ...first } = renamed(stateDict);
  const saved = [first, ...losses];
  if (saved.length !== current.rules.length) {
    throw new RangeError(
      `the state dictionary has ${saved.length} loss scales, but this scaler ${current.rules.length}: construct it with losses: ${saved.length}.`,
    );
  }
  demandInteger("step", step, 0);
  return { losses: current.rules.map((rule, i) => loadedLoss(saved[i] ?? {}, rule)), step };
}

const renamed = (dict: Partial<ScalerStateDict> | TorchScalerStateDict): Partial<ScalerStateDict> =>
  Object.fromEntries(
    Object.entries(dict).map(([name, value]) => [
      Object.hasOwn(namesOfTorch, name) ? namesOfTorch[name as keyof typeof namesOfTorch] : name,
      value,
    ]),
  );

function loadedLoss(dict: Partial<LossScaleDict>, current: ScaleRule): LossScale {
  const { scale, growthTracker, hysteresisTracker, ...others } = dict;
  const { stepsSinceRescale = 0, overflowsSinceRescale = 0, ...options } = others;
  const rule = ruleWith(current, options, ["scale", "growthTracker"]);
  const state = usedState(
    {
      // The checks refuse missing ones.
      scale: checkedScale("scale", scale as number, rule.minScale, rule.maxScale),
      growthTracker: growthTracker as number,
      hysteresisTracker: hysteresisTracker ?? rule.hysteresis,
      stepsSinceRescale,
      overflowsSinceRescale,
    },
    rule,
  );
  demandInteger("growthTracker", state.growthTracker, -rule.growthDelay);
  demandInteger("hysteresisTracker", state.hysteresisTracker ?? 0, -MAX_COUNT);
  demandInteger("stepsSinceRescale", state.stepsSinceRescale ?? 0, 0);
  demandInteger("overflowsSinceRescale", state.overflowsSinceRescale ?? 0, 0);
  return { state, rule };
}
