/**
 * How a loss scale reacts to steps with and without overflow: plain data, saved beside the state but apart from it.
 *
 * Numbers are float32: {@link scalerRule} rounds them, so that every implementation multiplies by the same bits. (torch
 * holds the factors in float64: a factor that float32 cannot represent may differ from torch in the last bit.)
 */
export interface ScaleRule {
  /** The scale to start from; positive and finite. */
  readonly initScale: number;
  /** False for a static scale: steps with non-finite gradients are still skipped, but the scale never changes. */
  readonly dynamic: boolean;
  /** The scale is multiplied by this after `growthInterval` clean steps; more than 1. A product that overflows is not taken. */
  readonly growthFactor: number;
  /** The scale is multiplied by this on overflow; between 0 and 1. */
  readonly backoffFactor: number;
  /** Clean steps in a row before the scale grows; an integer from 1 to 2^24. */
  readonly growthInterval: number;
  /** Torch's rule: a growth tracker that is already beyond the interval (loaded, say) never grows the scale again. */
  readonly exactInterval: boolean;
  /** The scale backs off on this many-th overflow since the last refill and on each after it; 1 is "at once". */
  readonly hysteresis: number;
  /** What refills the hysteresis tracker: every clean step (apex), or only growth (Megatron). */
  readonly hysteresisRefill: "clean" | "growth";
  /** Backing off never goes below this; 0 is no floor. */
  readonly minScale: number;
  /** Growth never goes above this; the largest float32 is no ceiling. */
  readonly maxScale: number;
}

/** What changes from step to step. Every number is exact in float32. */
export interface ScaleState {
  readonly scale: number;
  /** Clean steps since the scale last grew or an overflow was seen. */
  readonly growthTracker: number;
  /** Overflows that are still tolerated; absent where `hysteresis` is 1. */
  readonly hysteresisTracker?: number;
}

/** Rules of other systems, by name. Without a name: torch's constants with a floor of 2^-16. */
export type ScalerPreset =
  | "torch"
  | "apex"
  | "apexHysteresis"
  | "apexFp16Utils"
  | "megatron"
  | "jmp"
  | "keras"
  | "static"
  | "paper";

/** The largest finite float32, which as `maxScale` is no ceiling at all. */
const MAX_FLOAT32 = 3.4028234663852886e38;

/** Up to here float32 counts in steps of 1. */
const MAX_COUNT = 2 ** 24;

const torch: ScaleRule = {
  initScale: 2 ** 16,
  dynamic: true,
  growthFactor: 2,
  backoffFactor: 0.5,
  growthInterval: 2000,
  exactInterval: true,
  hysteresis: 1,
  hysteresisRefill: "clean",
  minScale: 0,
  maxScale: MAX_FLOAT32,
};

const halfstep: ScaleRule = { ...torch, exactInterval: false, minScale: 2 ** -16 };

/**
 * Sources: torch 2.13 `_amp_update_scale_`; apex `amp/scaler.py`, `amp_C.update_scale_hysteresis` and
 * `fp16_utils/loss_scaler.py`; Megatron-LM `DynamicGradScaler`; `jmp/_src/loss_scale.py`; Keras `LossScaleOptimizer`.
 * apex, Keras and Megatron let the scale grow to infinity, from where it never returns; here growth stops before.
 */
const presets: Readonly<Record<ScalerPreset, ScaleRule>> = {
  torch,
  apex: { ...torch, maxScale: 2 ** 24 },
  apexHysteresis: { ...torch, hysteresis: 2 },
  apexFp16Utils: { ...torch, initScale: 2 ** 32, growthInterval: 1000, minScale: 1 },
  megatron: {
    ...torch,
    initScale: 2 ** 32,
    growthInterval: 1000,
    hysteresis: 2,
    hysteresisRefill: "growth",
    minScale: 1,
  },
  jmp: { ...torch, initScale: 2 ** 15, minScale: 1 },
  keras: { ...torch, initScale: 2 ** 15 },
  static: { ...halfstep, initScale: 128, dynamic: false, minScale: 0 },
  paper: { ...halfstep, initScale: 2 ** 24 },
};

/**
 * A rule by name, or the default rule, with some of its numbers replaced.
 *
 * @throws RangeError naming the option, unless `growthFactor > 1`, `0 < backoffFactor < 1`, `growthInterval` and
 * `hysteresis` are integers from 1 to 2^24, and `minScale ≤ initScale ≤ maxScale` are finite (`initScale` positive).
 *
 * @example
 * scalerRule("torch", { initScale: 1024, growthInterval: 100 });
 */
export function scalerRule(preset?: ScalerPreset, overrides: Partial<ScaleRule> = {}): ScaleRule {
  if (preset !== undefined && !Object.hasOwn(presets, preset)) {
    throw new RangeError(
      `There is no scaler preset ${JSON.stringify(preset)}: choose one of ${Object.keys(presets).join(", ")}.`,
    );
  }
  const merged: Record<string, unknown> = {
    ...(preset === undefined ? halfstep : presets[preset]),
  };
  for (const [option, value] of Object.entries(overrides)) {
    if (option in merged && value !== undefined) merged[option] = value;
  }
  return validated(merged as unknown as ScaleRule);
}

function validated(given: ScaleRule): ScaleRule {
  const rule: ScaleRule = {
    ...given,
    initScale: Math.fround(given.initScale),
    growthFactor: Math.fround(given.growthFactor),
    backoffFactor: Math.fround(given.backoffFactor),
    minScale: Math.fround(given.minScale),
    maxScale: Math.min(Math.fround(given.maxScale), MAX_FLOAT32),
  };
  const isCount = (value: number): boolean =>
    Number.isInteger(value) && value >= 1 && value <= MAX_COUNT;
  const demands: readonly (readonly [option: keyof ScaleRule, holds: boolean, demand: string])[] = [
    ["initScale", rule.initScale > 0 && rule.initScale <= MAX_FLOAT32, "a positive float32"],
    [
      "growthFactor",
      rule.growthFactor > 1 && rule.growthFactor <= MAX_FLOAT32,
      "a finite float32 above 1",
    ],
    ["backoffFactor", rule.backoffFactor > 0 && rule.backoffFactor < 1, "between 0 and 1"],
    ["growthInterval", isCount(rule.growthInterval), "an integer from 1 to 2^24"],
    ["hysteresis", isCount(rule.hysteresis), "an integer from 1 to 2^24"],
    ["minScale", rule.minScale >= 0, "0 or more"],
    ["minScale", rule.minScale <= rule.initScale, `at most initScale (${rule.initScale})`],
    ["maxScale", rule.maxScale >= rule.initScale, `at least initScale (${rule.initScale})`],
    [
      "hysteresisRefill",
      rule.hysteresisRefill === "clean" || rule.hysteresisRefill === "growth",
      '"clean" or "growth"',
    ],
    ["dynamic", typeof rule.dynamic === "boolean", "true or false"],
    ["exactInterval", typeof rule.exactInterval === "boolean", "true or false"],
  ];
  for (const [option, holds, demand] of demands) {
    if (!holds) throw new RangeError(`${option} is ${given[option]}: it must be ${demand}.`);
  }
  return rule;
}

/** The state that training starts from: `initScale`, no clean steps yet, full hysteresis. */
export function initialScaleState(rule: ScaleRule): ScaleState {
  return scaleState(rule.initScale, 0, rule.hysteresis, rule);
}

/**
 * The state after a step whose gradients were all finite, or were not. Pure, in float32 arithmetic; `updateScale` of
 * every `AmpPrimitives` equals it bit for bit.
 */
export function nextScaleState(state: ScaleState, foundInf: boolean, rule: ScaleRule): ScaleState {
  if (!rule.dynamic) return state;
  const { scale, growthTracker, hysteresisTracker = rule.hysteresis } = state;
  if (foundInf) {
    const tolerated = rule.hysteresis > 1 ? Math.fround(hysteresisTracker - 1) : 0;
    const next =
      tolerated > 0 ? scale : Math.max(Math.fround(scale * rule.backoffFactor), rule.minScale);
    return scaleState(next, 0, tolerated, rule);
  }
  const successful = Math.fround(growthTracker + 1);
  const due = rule.exactInterval
    ? successful === rule.growthInterval
    : successful >= rule.growthInterval;
  const refills = due || rule.hysteresisRefill === "clean";
  const tolerated = refills ? rule.hysteresis : hysteresisTracker;
  if (!due) return scaleState(scale, successful, tolerated, rule);
  const grown = Math.fround(scale * rule.growthFactor);
  const next = Number.isFinite(grown) ? Math.min(grown, rule.maxScale) : scale;
  return scaleState(next, 0, tolerated, rule);
}

function scaleState(
  scale: number,
  growthTracker: number,
  hysteresisTracker: number,
  rule: ScaleRule,
): ScaleState {
  return rule.hysteresis > 1
    ? { scale, growthTracker, hysteresisTracker }
    : { scale, growthTracker };
}
