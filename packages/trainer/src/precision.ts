import { type Recipe, recipeOf, withRecipe } from "@halfstep/autocast";
import type { GradScalerOptions } from "@halfstep/grad-scaler";
import type { ParameterStorage } from "@halfstep/optim";

/** The name of a recipe, such as "float16" or "O2", or a recipe of one's own: what `recipeOf` of `@halfstep/autocast` takes. */
export type TrainingPrecision = string | Recipe;

/** The recipe that a precision names. */
export const recipeFor = (precision: TrainingPrecision): Recipe =>
  typeof precision === "string" ? recipeOf(precision) : precision;

/** Runs `fn` as a recipe wants: in its autocast region, if it casts op by op. */
export const inPrecision = <T>(
  precision: TrainingPrecision,
  fn: () => T extends PromiseLike<unknown> ? never : T,
): T => withRecipe(recipeFor(precision), fn as () => never) as T;

/** What flags say about the loss scale. */
export interface LossScaleFlags {
  /** A fixed scale in place of what the recipe has. */
  readonly staticLossScale?: number | undefined;
  /** Where a dynamic scale starts. */
  readonly initScale?: number | undefined;
}

/**
 * How a recipe scales the loss, as options of `GradScaler`. Flags override it where it scales, or computes in float16:
 * float32 and bfloat16 have the range that they need.
 */
export function scalerOptionsFor(
  { lossScale, compute }: Recipe,
  { staticLossScale, initScale }: LossScaleFlags = {},
): GradScalerOptions {
  const isScaled = lossScale !== 1 || (compute === "float16" && staticLossScale !== undefined);
  if (!isScaled) return { enabled: false };
  if (staticLossScale !== undefined) return { preset: "static", initScale: staticLossScale };
  if (lossScale !== "dynamic") return { preset: "static", initScale: lossScale };
  return initScale === undefined ? {} : { initScale };
}

/** How a recipe keeps parameters, as the option `storage` of an optimizer. */
export function storageFor({ params, masterWeights }: Recipe): ParameterStorage {
  if (params === "float32") return "float32";
  return masterWeights ? "master" : "plain";
}
