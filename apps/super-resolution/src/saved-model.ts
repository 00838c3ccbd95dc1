import type { Runtime } from "@halfstep/tensor";
import { loadModel } from "@halfstep/trainer";
import { checkpointIn } from "@halfstep/trainer/node";
import type { LayersModel } from "./keras/layers-model.js";
import { pretrained } from "./pretrained.js";

/**
 * The best network of a run folder, or that of a checkpoint; the pretrained one where no folder is given.
 * @throws DataError, CheckpointError
 */
export async function openModel(runtime: Runtime, directory?: string): Promise<LayersModel> {
  const model = await pretrained(runtime);
  return directory === undefined ? model : loadModel(model, await checkpointIn(directory));
}
