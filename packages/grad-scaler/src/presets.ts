import { demand, demandInteger, demandKnown } from "./refusal.js";
import type { ScaleRule } from "./rule.js";

/** Rules of other systems, by name. Without a name: torch's constants with a floor of 2^-16. */
export type ScalerPreset =
  | "torch"
  | "apex"
  | "apexHysteresis"
  | "apexFp16Utils"
  | "megatron"
  | "deepspeed"
  | "deepspeedFp16Optimizer"
  | "fairseq"
  | "jmp"
  | "keras"
  | "static"
  | "paper";

/** The largest finite float32: as `maxScale` it means no ceiling. */
const MAX_FLOAT32 = 3.4028234663852886e38;

/** The largest count that is exact in float32 in steps of 1. */
export const MAX_COUNT: number = 2 ** 24;

const torch: ScaleRule = {
  initScale: 2 ** 16,
  dynamic: true,
  growthFactor: 2,
  backoffFactor: 0.5,
  growthInterval: 2000,
  growthDelay: 0,
  exactInterval: true,
  hysteresis: 1,
  hysteresisRefill: "clean",
  tolerance: 0,
  minScale: 0,
  atFloor: "clamp",
  raiseAtFloor: true,
  maxScale: MAX_FLOAT32,
  targetUnderflow: 0,
  underflowFormat: "float16",
};

const halfstep: ScaleRule = { ...torch, exactInterval: false, minScale: 2 ** -16 };

/** A window of 1,000 steps from 2^32 with a floor of 1: apex.fp16_utils, and its derivatives. */
const fp16Utils: ScaleRule = { ...torch, initScale: 2 ** 32, growthInterval: 1000, minScale: 1 };

/**
 * Sources: torch 2.13 `_amp_update_scale_`; apex `amp/scaler.py`, `amp_C.update_scale_hysteresis` and
 * `fp16_utils/loss_scaler.py`; Megatron-LM `DynamicGradScaler`; DeepSpeed `fp16/loss_scaler.py` (`DynamicLossScaler`, with
 * the defaults of its configuration: `delayed_shift` is `hysteresis` and `consecutive_hysteresis` is
 * `hysteresisRefill: "clean"`) and `fp16/fused_optimizer.py`; fairseq `optim/dynamic_loss_scaler.py` (its `threshold` is
 * `minScale` with `atFloor: "clamp"`); `jmp/_src/loss_scale.py`; Keras `LossScaleOptimizer`.
 *
 * apex.fp16_utils, Megatron, DeepSpeed, fairseq and Keras let the scale grow to infinity, from which it never returns: here growth stops
 * before. Where fairseq and DeepSpeed end the run, training continues here as after any other back-off.
 */
const presets: Readonly<Record<ScalerPreset, ScaleRule>> = {
  torch,
  apex: { ...torch, maxScale: 2 ** 24 },
  apexHysteresis: { ...torch, hysteresis: 2 },
  apexFp16Utils: fp16Utils,
  megatron: { ...fp16Utils, hysteresis: 2, hysteresisRefill: "growth" },
  deepspeed: { ...fp16Utils, initScale: 2 ** 16, hysteresis: 2, hysteresisRefill: "growth" },
  deepspeedFp16Optimizer: { ...fp16Utils, growthDelay: 1, raiseAtFloor: false },
  fairseq: { ...torch, initScale: 2 ** 15, minScale: 1e-4, atFloor: "keep" },
  jmp: { ...torch, initScale: 2 ** 15, minScale: 1 },
  keras: { ...torch, initScale: 2 ** 15 },
  static: { ...halfstep, initScale: 128, dynamic: false, minScale: 0 },
  paper: { ...halfstep, initScale: 2 ** 24 },
};

/**
 * A rule by name, or the default rule, with some of its numbers replaced.
 *
 * @throws RangeError that names the option, for unknown options, and unless `growthFactor > 1`, `0 < backoffFactor < 1`, `growthInterval`
 * and `hysteresis` are integers from 1 to 2^24, `growthDelay` one from 0, `0 ≤ tolerance ≤ 1`, `0 ≤ targetUnderflow < 1`, and `minScale ≤
 * initScale ≤ maxScale` are finite (`initScale` positive).
 *
 * @example
 * scalerRule("torch", { initScale: 1024, growthInterval: 100 });
 */
export function scalerRule(preset?: ScalerPreset, overrides: Partial<ScaleRule> = {}): ScaleRule {
  if (preset === undefined) return ruleWith(halfstep, overrides);
  demandKnown("scaler preset", preset, Object.keys(presets));
  return ruleWith(presets[preset], overrides);
}

/**
 * A rule with some of its numbers replaced.
 *
 * @param others Names that the error about an unknown option lists, too.
 * @throws RangeError as {@link scalerRule}.
 */
export function ruleWith(
  base: ScaleRule,
  overrides: Partial<ScaleRule>,
  others: readonly string[] = [],
): ScaleRule {
  const merged: Record<string, unknown> = { ...base };
  for (const [option, value] of Object.entries(overrides)) {
    demandKnown("option of a loss scale", option, [...others, ...Object.keys(base)]);
    if (value !== undefined) merged[option] = value;
  }
  return validated(merged as unknown as ScaleRule);
}

/** The least of each count, and the choices of each option that is a name. */
const leastCounts = { growthInterval: 1, growthDelay: 0, hysteresis: 1 } as const;
const choices = {
  hysteresisRefill: ["clean", "growth"],
  atFloor: ["clamp", "keep"],
  underflowFormat: ["float16", "bfloat16"],
} as const;

function validated(given: ScaleRule): ScaleRule {
  // Comparisons would accept a string or a list as a number.
  for (const [option, value] of entriesOf(given)) {
    const type = typeof halfstep[option];
    const isOfType = type === "string" || typeof value === type;
    demand(option, value, isOfType, `of type ${type}, not ${typeof value}`);
  }
  const rule: ScaleRule = {
    ...given,
    initScale: Math.fround(given.initScale),
    tolerance: Math.fround(given.tolerance),
    minScale: Math.fround(given.minScale),
    maxScale: Math.min(Math.fround(given.maxScale), MAX_FLOAT32),
    // A share above 0 is not rounded to 0.
    targetUnderflow:
      given.targetUnderflow > 0
        ? Math.max(Math.round(given.targetUnderflow * 2 ** 16), 1) / 2 ** 16
        : given.targetUnderflow,
  };
  const { initScale, growthFactor, backoffFactor, tolerance, minScale, targetUnderflow } = rule;
  const check = (option: keyof ScaleRule, holds: boolean, what: string): void =>
    demand(option, given[option], holds, what);
  check("initScale", initScale > 0 && initScale <= MAX_FLOAT32, "a positive float32");
  check("growthFactor", growthFactor > 1 && growthFactor <= MAX_FLOAT32, "a float32 above 1");
  check("backoffFactor", Math.fround(backoffFactor) > 0 && backoffFactor < 1, "between 0 and 1");
  check("tolerance", tolerance >= 0 && tolerance <= 1, "from 0 to 1");
  check("minScale", minScale >= 0 && minScale <= initScale, `from 0 to initScale (${initScale})`);
  check("maxScale", rule.maxScale >= initScale, `at least initScale (${initScale})`);
  check("targetUnderflow", targetUnderflow >= 0 && targetUnderflow < 1, "from 0 to below 1");
  for (const [option, least] of entriesOf(leastCounts))
    demandInteger(option, rule[option], least, MAX_COUNT);
  for (const [option, names] of entriesOf(choices))
    check(
      option,
      names.some((name) => name === rule[option]),
      names.join(" or "),
    );
  return rule;
}

/** The members of a table, with the types of their names. */
const entriesOf = <T extends object>(table: T): readonly [keyof T, T[keyof T]][] =>
  Object.entries(table) as [keyof T, T[keyof T]][];
