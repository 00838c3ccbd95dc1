import { type Recipe, recipeOf, withRecipe } from "@halfstep/autocast";
import type { GradScalerOptions } from "@halfstep/grad-scaler";
import type { ParameterStorage } from "@halfstep/optim";

/** The name of a recipe, such as "float16" or "O2", or a custom recipe, as `recipeOf` of `@halfstep/autocast` takes them. */
export type TrainingPrecision = string | Recipe;

/** The recipe of a precision. */
export const recipeFor = (precision: TrainingPrecision): Recipe =>
  typeof precision === "string" ? recipeOf(precision) : precision;

/** Runs `fn` in the autocast region of a recipe, if the recipe casts op by op. */
export const inPrecision = <T>(
  precision: TrainingPrecision,
  fn: () => T extends PromiseLike<unknown> ? never : T,
): T => withRecipe(recipeFor(precision), fn as () => never) as T;

/** Flags of the loss scale. */
export interface LossScaleFlags {
  /** A fixed scale instead of the recipe's. */
  readonly staticLossScale?: number | undefined;
  /** The initial value of a dynamic scale. */
  readonly initScale?: number | undefined;
}

/**
 * The options of `GradScaler` for a recipe. Flags override them where the recipe scales or computes in float16; the range of
 * float32 and bfloat16 suffices without. In float16 a scale of 1 is one, too: steps that overflow are skipped.
 */
export function scalerOptionsFor(
  { lossScale, compute }: Recipe,
  { staticLossScale, initScale }: LossScaleFlags = {},
): GradScalerOptions {
  if (lossScale === 1 && compute !== "float16") return { enabled: false };
  if (staticLossScale !== undefined) return { preset: "static", initScale: staticLossScale };
  if (lossScale !== "dynamic") return { preset: "static", initScale: lossScale };
  return initScale === undefined ? {} : { initScale };
}

/** The option `storage` of an optimizer for a recipe. */
export function storageFor({ params, masterWeights }: Recipe): ParameterStorage {
  if (params === "float32") return "float32";
  return masterWeights ? "master" : "plain";
}
