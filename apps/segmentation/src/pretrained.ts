import { DataError } from "@halfstep/data";
import { requireEnoughWeights, UNet } from "@halfstep/models";
import { applyRecipe, type SavedTensor, type StateDict } from "@halfstep/nn";
import type { Runtime } from "@halfstep/tensor";
import { loadWeights, type PretrainedWeights, recipeFor } from "@halfstep/trainer";
import { readWeights } from "@halfstep/trainer/node";
import type { MaskClasses } from "./masks.js";
import { makeUNet, type OpenedSegmenter, type Segmenter } from "./saved-model.js";
import type { Encoding } from "./tiles.js";

/** A U-Net of someone else's weights. */
export interface PretrainedOptions {
  /** A checkpoint of torch or a safetensors file, with the names of milesial/Pytorch-UNet. */
  readonly path: string;
  /** Where the weights lie in a checkpoint of torch. */
  readonly key?: string | undefined;
  /** The names of the classes and their values in masks, which stand in no such file. Default: numbers, and 0 and 255 for two. */
  readonly classes?: MaskClasses | undefined;
  /** Factor by which pictures are scaled. Default 0.5, as milesial's predictions. */
  readonly scale?: number | undefined;
  /** Height and width of the tiles for evaluation. Default 128. */
  readonly tile?: number | undefined;
  /** Default "float32". */
  readonly precision?: string | undefined;
}

/**
 * Opens weights as a network to predict with. Its size is that of the shapes of the weights. Its inputs are bytes over 255.
 * @throws DataError, CheckpointError where they are of no such U-Net, or of other classes
 */
export async function openPretrained(
  runtime: Runtime,
  { path, key, classes, scale = 0.5, tile = 128, precision = "float32" }: PretrainedOptions,
): Promise<OpenedSegmenter> {
  const weights = withTwoClasses(await readWeights(path, { key }));
  const network = networkOf(weights, path);
  const masks = classes ?? numbered(network.classes);
  if (masks.classes.length !== network.classes)
    throw new DataError(
      path,
      `is a network for ${network.classes} classes, and these are ${masks.classes.length}`,
    );
  const { channels, width, bilinear } = network;
  const segmenter: Segmenter = {
    ...{ channels, width, bilinear, ...masks, scale, tile, precision },
    encoding: "linear",
  };
  const model = makeUNet(runtime, segmenter, 0);
  loadWeights(model, weights, path);
  applyRecipe(model, recipeFor(precision)).eval();
  return { ...segmenter, model, path, step: 0 };
}

interface Network {
  readonly channels: number;
  readonly classes: number;
  readonly width: number;
  readonly bilinear: boolean;
}

/** The last layer, which is useless for other classes. */
export const head: RegExp = /^outc\./;

/** A network of someone else's weights to start training from. */
export interface StartingPoint
  extends Pick<Network, "width" | "bilinear">,
    Pick<PretrainedWeights, "weights" | "source"> {
  readonly encoding: Encoding;
}

/**
 * What training from weights starts with: their size, and their inputs, which are bytes over 255.
 * @param channels of the pictures
 * @throws DataError where they are of no such U-Net, or for pictures of other channels
 */
export function startingPoint(
  { weights: given, source }: Pick<PretrainedWeights, "weights" | "source">,
  channels: number,
): StartingPoint {
  const weights = withTwoClasses(given);
  const { width, bilinear, ...network } = networkOf(weights, source);
  if (network.channels !== channels)
    throw new DataError(
      source,
      `is a network for pictures of ${network.channels} channels, and these have ${channels}`,
    );
  return { width, bilinear, encoding: "linear", weights, source };
}

/** The size of the network that weights are of. */
function networkOf(weights: StateDict, path: string): Network {
  const names = Object.keys(weights);
  const shapeOf = (name: string): readonly number[] => {
    const shape = weights[name]?.shape;
    if (shape?.length !== 4)
      throw new DataError(
        path,
        `is of no U-Net: there is no ${name} among ${names.slice(0, 6).join(", ")}${names.length > 6 ? ", …" : ""}`,
      );
    return shape;
  };
  const [width = 0, channels = 0] = shapeOf(first);
  const [classes = 0] = shapeOf(`${last}.weight`);
  if (channels !== 1 && channels !== 3)
    throw new DataError(path, `is a network for ${channels} channels: pictures have 1 or 3`);
  const network = { channels, classes, width, bilinear: !("up1.up.weight" in weights) };
  const parameters = UNet.parameterCount(network);
  requireEnoughWeights(weights, { name: "a U-Net", parameters, source: path });
  return network;
}

const first = "inc.double_conv.0.weight";
const last = "outc.conv";

/**
 * A network with one score for a pixel takes its sigmoid: the same as the softmax with a score of zero for the ground.
 */
function withTwoClasses(weights: StateDict): StateDict {
  const { [`${last}.weight`]: weight, [`${last}.bias`]: bias } = weights;
  if (weight?.shape[0] !== 1 || bias?.shape[0] !== 1) return weights;
  return {
    ...weights,
    [`${last}.weight`]: behindZeros(weight),
    [`${last}.bias`]: behindZeros(bias),
  };
}

const behindZeros = ({ shape, data }: SavedTensor): SavedTensor => {
  const twice = new Float32Array(2 * data.length);
  twice.set(data, data.length);
  return { shape: [2, ...shape.slice(1)], dtype: "float32", data: twice };
};

function numbered(count: number): MaskClasses {
  const numbers = Array.from({ length: count }, (_, i) => i);
  return {
    maskKind: "grey",
    classes: numbers.map(String),
    maskValues: count === 2 ? [0, 255] : numbers,
  };
}
