import type { Runtime } from "@halfstep/tensor";
import { UsageError } from "@halfstep/trainer/cli";
import { closeMargin } from "./answers.js";
import { loadParameters, type OpenOptions, openModel, type SavedModel } from "./model-folder.js";
import type { ModelPurpose } from "./model-purpose.js";
import { type PreparedTask, prepareTask } from "./prepare.js";
import type { Referee } from "./score.js";
import { type TaskData, withoutExamples } from "./tasks.js";
import type { Encoded } from "./tokenizer.js";

/** A model that this app trained, with its task. */
export interface UsableModel extends SavedModel {
  readonly purpose: ModelPurpose;
}

/** @throws UsageError for a model from elsewhere, which has no task yet */
export async function openTrained(
  directory: string,
  options: Pick<OpenOptions, "peft" | "key"> = {},
): Promise<UsableModel> {
  const saved = await openModel(directory, options);
  const { purpose } = saved;
  if (!purpose)
    throw new UsageError(
      `${directory} has a BERT without a task: train --pretrained ${directory} gives it one`,
    );
  return { ...saved, purpose };
}

/** Puts a trained model onto a device, with data to be tested on; in float32, or stored and computed in float16. */
export function useModel(
  runtime: Runtime,
  saved: UsableModel,
  half: boolean,
  data: TaskData = withoutExamples(saved.purpose),
): PreparedTask {
  const prepared = prepareTask(runtime, data, saved.tokenizer, {
    ...saved.purpose,
    features: saved.features,
    ...{ shape: saved.shape, seed: 0, precision: "float32" },
  });
  loadParameters(prepared.model, saved);
  // Halves in, halves out: activations follow the parameters. The field of tags stays float32.
  if (half) prepared.model.half();
  prepared.model.eval();
  return prepared;
}

/**
 * The referee for close cases. Its float32 parameters are loaded onto the device at the first close case, next to those
 * in halves.
 */
export const refereeOf = (runtime: Runtime, saved: UsableModel): Referee<Encoded> => ({
  margin: closeMargin,
  open: () => useModel(runtime, saved, false).learner,
});
