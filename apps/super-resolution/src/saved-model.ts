import { existsSync } from "node:fs";
import { join } from "node:path";
import { requireEnoughWeights } from "@halfstep/models";
import type { Runtime } from "@halfstep/tensor";
import {
  type Checkpoint,
  CheckpointError,
  loadModel,
  loadWeights,
  modelState,
  type Stateful,
  savedData,
} from "@halfstep/trainer";
import type { PretrainedFlags } from "@halfstep/trainer/cli";
import { checkpointIn, readWeights } from "@halfstep/trainer/node";
import { LayersModel, loadLayersModel, parameterCount } from "./keras/layers-model.js";
import { readTopology } from "./keras/topology.js";
import { pretrained } from "./pretrained.js";

/** The flags that name a network. */
export interface NetworkFlags extends PretrainedFlags {
  /** The --out folder of a training, or a checkpoint. Undefined: the network that comes with the package. */
  readonly model?: string;
}

/**
 * The best network of a run folder or that of a checkpoint; someone else's: a Keras layers model, or weights of torch or safetensors by the
 * names of the package's network; or the package's, where neither is named.
 * @throws DataError, CheckpointError, TorchFileError, SafetensorsError
 */
export async function openModel(
  runtime: Runtime,
  { model, pretrained: path, key }: NetworkFlags,
): Promise<LayersModel> {
  if (path === undefined && model !== undefined) return modelIn(runtime, await checkpointIn(model));
  const layers = path === undefined ? undefined : layersIn(path);
  if (layers !== undefined) return loadLayersModel(runtime, layers);
  const own = await pretrained(runtime);
  if (path !== undefined) loadWeights(own, await readWeights(path, { key }), path);
  return own;
}

/** The layers of a network, as a part of checkpoints. */
export const savedLayers = ({ topology }: LayersModel): Stateful => savedData(topology.json);

/** The network of a checkpoint. The contents of files are validated before use. */
export function modelIn(runtime: Runtime, checkpoint: Checkpoint): LayersModel {
  const { path, parts } = checkpoint;
  if (parts.layers === undefined)
    throw new CheckpointError("misfit", path, "was not saved by this program");
  const source = `${path}, layers`;
  const topology = readTopology(parts.layers, source);
  const described = { name: "a layers model", parameters: parameterCount(topology), source };
  requireEnoughWeights(modelState(checkpoint), described);
  return loadModel(() => new LayersModel(runtime, topology), checkpoint);
}

/** The JSON of a layers model that a path names, or that its folder has. */
function layersIn(path: string): string | undefined {
  // The index of several files of weights is JSON, too.
  if (/(?<!\.index)\.json$/.test(path)) return path;
  const inside = join(path, "model.json");
  return existsSync(inside) ? inside : undefined;
}
