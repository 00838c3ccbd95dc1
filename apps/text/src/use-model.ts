import { loadTorchStateDict } from "@halfstep/nn";
import type { Runtime } from "@halfstep/tensor";
import { UsageError } from "@halfstep/trainer/cli";
import { type ModelPurpose, openModel, type SavedModel } from "./model-folder.js";
import { type PreparedTask, prepareTask } from "./prepare.js";
import type { TaskData } from "./tasks.js";

/** A trained model of here, with what it was made for. */
export interface UsableModel extends SavedModel {
  readonly purpose: ModelPurpose;
}

/** @throws UsageError for a model from elsewhere, which has no task yet */
export async function openTrained(directory: string): Promise<UsableModel> {
  const saved = await openModel(directory);
  const { purpose } = saved;
  if (!purpose)
    throw new UsageError(
      `${directory} has a BERT without a task: train --init ${directory} gives it one`,
    );
  return { ...saved, purpose };
}

/** Puts a trained model onto a device, in float16 or as it was trained, ready to be used on data. */
export function useModel(
  runtime: Runtime,
  { shape, tokenizer, purpose, state }: UsableModel,
  data: TaskData,
  half: boolean,
): PreparedTask {
  const prepared = prepareTask(runtime, data, tokenizer, {
    ...purpose,
    shape,
    seed: 0,
    precision: "float32",
  });
  loadTorchStateDict(prepared.model, state);
  // Half parameters take half activations along; what must not be half, the field of tags, stays float32.
  if (half) prepared.model.half();
  prepared.model.eval();
  return prepared;
}
