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

/** How a recipe scales the loss, as options of `GradScaler`. */
export function scalerOptionsFor({ lossScale }: Recipe): GradScalerOptions {
  if (lossScale === "dynamic") return {};
  return lossScale === 1 ? { enabled: false } : { preset: "static", initScale: lossScale };
}

/** How a recipe keeps parameters, as the option `storage` of an optimizer. */
export function storageFor({ params, masterWeights }: Recipe): ParameterStorage {
  if (params === "float32") return "float32";
  return masterWeights ? "master" : "plain";
}
