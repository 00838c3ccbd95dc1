import { existsSync } from "node:fs";
import { join } from "node:path";
import { DataError } from "@halfstep/data";
import type { StateDict } from "@halfstep/nn";
import type { Runtime } from "@halfstep/tensor";
import { type Checkpoint, CheckpointError } from "@halfstep/trainer";
import { CheckpointFolder, readCheckpoint } from "@halfstep/trainer/node";
import type { LayersModel } from "./keras/layers-model.js";
import { pretrained } from "./pretrained.js";

/**
 * The best network of a run folder, or that of a checkpoint; the pretrained one where no folder is given.
 * @throws DataError, CheckpointError
 */
export async function openModel(runtime: Runtime, directory?: string): Promise<LayersModel> {
  const model = await pretrained(runtime);
  if (directory === undefined) return model;
  const { path, parts } = await checkpointIn(directory);
  try {
    model.loadStateDict((parts.model ?? {}) as StateDict);
  } catch (error) {
    throw new CheckpointError("misfit", path, (error as Error).message, error as Error);
  }
  return model;
}

async function checkpointIn(directory: string): Promise<Checkpoint> {
  const inside = join(directory, "checkpoints");
  if (!existsSync(inside)) {
    if (!existsSync(directory))
      throw new DataError(directory, "is not there: train first, or name the --out of a training");
    return readCheckpoint(directory);
  }
  const folder = new CheckpointFolder(inside);
  const checkpoint = (await folder.best()) ?? (await folder.newest()).checkpoint;
  if (!checkpoint) throw new DataError(inside, "has no checkpoint: train first");
  return checkpoint;
}
