import { type Recipe, recipeOf } from "@halfstep/autocast";
import type { ResNet } from "@halfstep/models";
import { applyRecipe } from "@halfstep/nn";
import type { Runtime } from "@halfstep/tensor";
import { CheckpointError, loadModel, type Stateful, savedData } from "@halfstep/trainer";
import { checkpointIn } from "@halfstep/trainer/node";
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
export const savedNetwork = (state: NetworkState): Stateful => savedData(state);

/**
 * The best network of a run folder, or that of a checkpoint.
 * @param recipe that it runs by from now on. Default: the one that it was trained by.
 * @throws CheckpointError
 */
export async function openNetwork(
  runtime: Runtime,
  directory: string,
  recipe?: Recipe,
): Promise<OpenedNetwork> {
  const checkpoint = await checkpointIn(directory);
  const { path, parts, step } = checkpoint;
  const { network, view, recipe: trained } = (parts.network ?? {}) as Partial<NetworkState>;
  if (!network || !view || !trained)
    throw new CheckpointError("misfit", path, "was not saved by this program");
  const model = loadModel(networkOf(runtime, network, 0), checkpoint);
  const chosen = recipe ?? recipeOf(trained);
  applyRecipe(model, chosen).eval();
  return { network, view, recipe: chosen, model, path, step };
}
