import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Recipe, recipeOf } from "@halfstep/autocast";
import { DataError } from "@halfstep/data";
import type { ResNet } from "@halfstep/models";
import { applyRecipe, type StateDict } from "@halfstep/nn";
import type { Runtime } from "@halfstep/tensor";
import { type Checkpoint, CheckpointError, type Stateful } from "@halfstep/trainer";
import { CheckpointFolder, readCheckpoint } from "@halfstep/trainer/node";
import type { View } from "./data.js";
import { type NetworkOptions, networkOf } from "./model.js";

/** What has to be known of a network besides its parameters. */
interface NetworkState {
  readonly network: NetworkOptions;
  readonly view: View;
  readonly recipe: Recipe;
}

/** A network to predict with, in evaluation mode. */
export interface OpenedNetwork extends NetworkState {
  readonly model: ResNet;
  /** The checkpoint that it is from. */
  readonly path: string;
  /** Optimizer steps that it was trained. */
  readonly step: number;
}

/** What has to be known of a network besides its parameters, as a part of checkpoints. */
export const savedNetwork = (state: NetworkState): Stateful => ({
  stateDict: () => state,
  loadStateDict: () => {},
});

/**
 * The best network of a run folder, or that of a checkpoint.
 * @param recipe that it runs by from now on. Default: the one that it was trained by.
 * @throws CheckpointError, DataError
 */
export async function openNetwork(
  runtime: Runtime,
  directory: string,
  recipe?: Recipe,
): Promise<OpenedNetwork> {
  const { path, parts, step } = await checkpointIn(directory);
  const { network, view, recipe: trained } = (parts.network ?? {}) as Partial<NetworkState>;
  if (!network || !view || !trained)
    throw new CheckpointError("misfit", path, "was not saved by this program");
  const model = networkOf(runtime, network, 0);
  try {
    model.loadStateDict(parts.model as StateDict);
  } catch (error) {
    throw new CheckpointError("misfit", path, (error as Error).message, error as Error);
  }
  const chosen = recipe ?? recipeOf(trained);
  applyRecipe(model, chosen).eval();
  return { network, view, recipe: chosen, model, path, step };
}

async function checkpointIn(directory: string): Promise<Checkpoint> {
  const inside = join(directory, "checkpoints");
  if (!existsSync(inside)) {
    if (!existsSync(directory))
      throw new DataError(
        directory,
        "is not there: train a network first, or name its --out folder",
      );
    return readCheckpoint(directory);
  }
  const folder = new CheckpointFolder(inside);
  const checkpoint = (await folder.best()) ?? (await folder.newest()).checkpoint;
  if (!checkpoint) throw new DataError(inside, "has no checkpoint: train a network first");
  return checkpoint;
}
