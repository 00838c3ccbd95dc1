import type { Recipe } from "@halfstep/autocast";
import { ConfigFields, ResNet, requireEnoughWeights } from "@halfstep/models";
import { applyRecipe, type StateDict } from "@halfstep/nn";
import type { Runtime } from "@halfstep/tensor";
import {
  type Checkpoint,
  CheckpointError,
  loadModel,
  modelState,
  type Stateful,
  savedData,
  savedRecipe,
} from "@halfstep/trainer";
import { checkpointIn } from "@halfstep/trainer/node";
import type { View } from "./data.js";
import { type NetworkOptions, networkOf } from "./model.js";

/** The description of a network besides its parameters. */
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
  /** Number of optimizer steps of its training. */
  readonly step: number;
}

/** The description of a network besides its parameters, as a part of checkpoints. */
export const savedNetwork = (state: NetworkState): Stateful => savedData(state);

/**
 * The best network of a run folder, or that of a checkpoint.
 * @param recipe The recipe to run by. Default: that of its training.
 * @throws CheckpointError, ConfigError
 */
export async function openNetwork(
  runtime: Runtime,
  directory: string,
  recipe?: Recipe,
): Promise<OpenedNetwork> {
  return networkIn(runtime, await checkpointIn(directory), recipe);
}

/** The network of a checkpoint. The contents of files are validated before use. */
export function networkIn(
  runtime: Runtime,
  checkpoint: Checkpoint,
  recipe?: Recipe,
): OpenedNetwork {
  const { path, parts, step } = checkpoint;
  if (parts.network === undefined)
    throw new CheckpointError("misfit", path, "was not saved by this program");
  const source = `${path}, network`;
  const fields = new ConfigFields(parts.network, source);
  const view = viewIn(fields.fields("view"));
  const network = optionsIn(fields.fields("network"), modelState(checkpoint), source);
  if (network.classes !== view.classes.length || network.channels !== view.channels)
    throw new CheckpointError("misfit", path, "has a network and images of two kinds");
  const chosen = recipe ?? savedRecipe((parts.network as Partial<NetworkState>).recipe, checkpoint);
  const model = loadModel(() => networkOf(runtime, network, 0), checkpoint);
  applyRecipe(model, chosen).eval();
  return { network, view, recipe: chosen, model, path, step };
}

function optionsIn(fields: ConfigFields, state: StateDict, source: string): NetworkOptions {
  const network = {
    layers: fields.numbers("layers"),
    block: fields.oneOf("block", ["basic", "bottleneck"], "basic"),
    width: fields.count("width", 64),
    stem: fields.oneOf("stem", ["imagenet", "cifar"]),
    shortcut: fields.oneOf("shortcut", ["projection", "padding"], "projection"),
    classes: fields.count("classes"),
    channels: fields.count("channels"),
  } as const;
  // Each block has weights of its own.
  const most = Object.keys(state).length;
  const isCount = (blocks: number): boolean =>
    Number.isSafeInteger(blocks) && blocks > 0 && blocks <= most;
  if (![3, 4].includes(network.layers.length) || !network.layers.every(isCount))
    fields.refuse("has layers that are not the numbers of blocks of three or four stages");
  const parameters = ResNet.parameterCount(network);
  requireEnoughWeights(state, { name: "a ResNet", parameters, source });
  return network;
}

/** Most bytes of a network's image. Training accepts no larger ones, because a batch of 2 GiB has at least two. */
const mostImageBytes = 2 ** 30;

/** Most pixels of the resized shorter side of an image. */
const mostPixels = 2 ** 14;

function viewIn(fields: ConfigFields): View {
  const channels = fields.count("channels");
  const view = {
    classes: fields.texts("classes"),
    ...(fields.has("multiLabel") && { multiLabel: fields.truth("multiLabel") }),
    size: fields.count("size"),
    channels,
    resize: fields.count("resize"),
    ...(fields.has("zoomsAll") && { zoomsAll: fields.truth("zoomsAll") }),
    mean: fields.numbers("mean"),
    std: fields.numbers("std"),
  };
  const isTooLarge = 4 * view.size ** 2 * channels > mostImageBytes || view.resize > mostPixels;
  if (isTooLarge || view.resize < view.size)
    fields.refuse(`has images of ${view.size} pixels, taken from ${view.resize}`);
  if ([view.mean, view.std].some((values) => values.length !== channels))
    fields.refuse(`has no mean and std for each of ${channels} channels`);
  return view;
}
