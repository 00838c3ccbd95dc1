import { type Recipe, recipeOf } from "@halfstep/autocast";
import type { Checkpoint } from "./checkpoint.js";
import { CheckpointError } from "./checkpoint-error.js";

/**
 * The recipe in a checkpoint, which was saved by name or in full.
 * @throws CheckpointError where there is no such recipe
 */
export function savedRecipe(saved: unknown, { path }: Pick<Checkpoint, "path">): Recipe {
  try {
    return recipeOf(saved);
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    throw new CheckpointError("misfit", path, `has no recipe: ${error.message}`, error);
  }
}
