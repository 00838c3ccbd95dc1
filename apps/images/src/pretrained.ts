import type { Recipe } from "@halfstep/autocast";
import { DataError } from "@halfstep/data";
import { ResNet, requireEnoughWeights } from "@halfstep/models";
import { applyRecipe, type StateDict } from "@halfstep/nn";
import type { Runtime } from "@halfstep/tensor";
import { loadWeights } from "@halfstep/trainer";
import { readWeights } from "@halfstep/trainer/node";
import type { View } from "./data.js";
import { type NetworkOptions, networkOf } from "./model.js";
import type { OpenedNetwork } from "./saved-network.js";

/** The classification layer, which is useless for other classes: torchvision's name, and that of networks for CIFAR-10. */
export const head: RegExp = /^(fc|linear)\./;

/** A network of someone else's weights. */
export interface PretrainedOptions {
  /** A checkpoint of torch or a safetensors file, with torchvision's names or those of the networks for CIFAR-10. */
  readonly path: string;
  /** Where the weights lie in a checkpoint of torch. */
  readonly key?: string | undefined;
  readonly recipe: Recipe;
  /** The format of its images, which stands in no such file. */
  readonly viewFor: (network: NetworkOptions) => Promise<View>;
}

/**
 * Opens weights as a network to predict with. Its architecture is that of the names and shapes of the weights.
 * @throws DataError where they are of no ResNet, or not those of the images
 */
export async function openPretrained(
  runtime: Runtime,
  { path, key, recipe, viewFor }: PretrainedOptions,
): Promise<OpenedNetwork> {
  const weights = await readWeights(path, { key });
  const network = networkOfWeights(weights, path);
  const view = await viewFor(network);
  if (view.channels !== network.channels)
    throw new DataError(
      path,
      `is a network for images of ${network.channels} channels, and these have ${view.channels}`,
    );
  if (view.classes.length !== network.classes)
    throw new DataError(
      path,
      `is a network for ${network.classes} classes, and these are ${view.classes.length}`,
    );
  const model = networkOf(runtime, network, 0);
  loadWeights(model, weights, path);
  applyRecipe(model, recipe).eval();
  return { network, view, recipe, model, path, step: 0 };
}

/**
 * The architecture that weights are of, by their names and shapes.
 * @throws DataError where they are of no ResNet
 */
export function networkOfWeights(weights: StateDict, path: string): NetworkOptions {
  const names = Object.keys(weights);
  const shapeOf = (name: string): readonly number[] => {
    const shape = weights[name]?.shape;
    if (shape === undefined)
      throw new DataError(
        path,
        `is of no ResNet: there is no ${name} among ${names.slice(0, 6).join(", ")}${names.length > 6 ? ", …" : ""}`,
      );
    return shape;
  };
  const [width = 0, channels = 0, kernel] = shapeOf("conv1.weight");
  const [classes = 0] = shapeOf("linear.weight" in weights ? "linear.weight" : "fc.weight");
  const blocks = names.flatMap((name) => /^layer([1-4])\.(\d+)\./.exec(name)?.slice(1) ?? []);
  const layers = ["1", "2", "3", "4"]
    .map((stage) => new Set(blocks.filter((_, i) => i % 2 === 1 && blocks[i - 1] === stage)).size)
    .filter((count) => count > 0);
  if (layers.length < 3)
    throw new DataError(path, "is of no ResNet: it has fewer than three stages");
  const has = (pattern: RegExp): boolean => names.some((name) => pattern.test(name));
  const network = {
    ...{ layers, width, channels, classes },
    block: has(/^layer1\.0\.conv3\./) ? "bottleneck" : "basic",
    stem: kernel === 7 ? "imagenet" : "cifar",
    shortcut: has(/\.(downsample|shortcut)\./) ? "projection" : "padding",
  } as const;
  const parameters = ResNet.parameterCount(network);
  requireEnoughWeights(weights, { name: "a ResNet", parameters, source: path });
  return network;
}
