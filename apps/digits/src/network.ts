import { existsSync } from "node:fs";
import { join } from "node:path";
import { DigitsCnn } from "@halfstep/models";
import type { SavedTensor, StateDict } from "@halfstep/nn";
import type { Runtime } from "@halfstep/tensor";
import { CheckpointError, loadModel, loadWeights, type Precision } from "@halfstep/trainer";
import { checkpointIn, readWeights } from "@halfstep/trainer/node";
import { type NetworkFlags, precisions } from "./options.js";
import { checkpointsOf } from "./resume.js";

/** A network to predict with, in evaluation mode. */
export interface OpenedNetwork {
  readonly model: DigitsCnn;
  /** The checkpoint or the file that it is from. */
  readonly path: string;
  /** The one of its training; float32 for weights of others. */
  readonly precision: Precision;
}

/**
 * Opens the network of a training, or that of someone else's weights.
 * @throws CheckpointError, TorchFileError, SafetensorsError
 */
export async function openNetwork(runtime: Runtime, flags: NetworkFlags): Promise<OpenedNetwork> {
  const { pretrained: path, key, precision } = flags;
  const model = new DigitsCnn(runtime, { seed: 0 });
  if (path !== undefined) {
    loadWeights(model, pixelsFirst(await readWeights(path, { key })), path);
    model.eval();
    return { model, path, precision: precision ?? "float32" };
  }
  const trained = precisions.filter((name) =>
    existsSync(checkpointsOf(flags.model, name).directory),
  );
  const chosen = precision ?? trained[0] ?? "float32";
  const checkpoint = await newestOf(flags.model, trained.includes(chosen) ? chosen : undefined);
  loadModel(model, checkpoint).eval();
  return { model, path: checkpoint.path, precision: chosen };
}

/** The newest checkpoint of a precision in a run folder; without a precision that of a checkpoint's folder. */
async function newestOf(directory: string, precision: Precision | undefined) {
  if (precision === undefined) return checkpointIn(directory);
  const { checkpoint } = await checkpointsOf(directory, precision).newest();
  if (checkpoint) return checkpoint;
  throw new CheckpointError(
    "not-found",
    join(directory, "checkpoints", precision),
    "has no checkpoint: train first, or name the folder of a run or of a checkpoint",
  );
}

/** The last layer, which is useless for other classes. */
export const head: RegExp = /^fc\./;

/** Height and width of the features before the last layer, and their channels. */
const [side, channels] = [3, 64];

/** Torch flattens channel by channel, and this network pixel by pixel: the columns of the last layer in the order of the latter. */
export function pixelsFirst(weights: StateDict): StateDict {
  const { "fc.weight": weight } = weights;
  const columns = side * side * channels;
  if (weight?.shape.length !== 2 || weight.shape[1] !== columns) return weights;
  const data = Float32Array.from(weight.data, (_, i) => {
    const [row, column] = [Math.floor(i / columns), i % columns];
    const [pixel, channel] = [Math.floor(column / channels), column % channels];
    return weight.data[row * columns + channel * side * side + pixel] as number;
  });
  const reordered: SavedTensor = { shape: weight.shape, dtype: "float32", data };
  return { ...weights, "fc.weight": reordered };
}
