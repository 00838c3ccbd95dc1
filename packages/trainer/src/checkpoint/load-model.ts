import type { Module, StateDict } from "@halfstep/nn";
import type { Checkpoint } from "./checkpoint.js";
import { CheckpointError } from "./checkpoint-error.js";

/**
 * Loads the parameters and buffers of a checkpoint's model into a model, and returns the model.
 * @param model The model, or a function that makes it from the checkpoint. Errors of this function become errors of the
 * checkpoint.
 * @param state Another state to load instead, such as averages.
 * @throws CheckpointError where they do not fit the model
 *
 * @example
 * const checkpoint = await checkpointIn("runs/images");
 * loadModel(model, checkpoint).eval();
 */
export function loadModel<M extends Pick<Module, "loadStateDict">>(
  model: M | (() => M),
  checkpoint: Checkpoint,
  state: StateDict = modelState(checkpoint),
): M {
  try {
    const made = typeof model === "function" ? model() : model;
    made.loadStateDict(state);
    return made;
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const { path } = checkpoint;
    throw new CheckpointError("misfit", path, `has another model: ${error.message}`, error);
  }
}

/**
 * The state of a checkpoint's model, for code that makes the model from it.
 * @throws CheckpointError where it has none
 */
export function modelState({ path, parts }: Checkpoint): StateDict {
  const state = parts.model;
  if (typeof state !== "object" || state === null)
    throw new CheckpointError("misfit", path, "has no model: it was saved by another program");
  for (const [name, tensor] of Object.entries(state))
    if (!isTensor(tensor))
      throw new CheckpointError("misfit", path, `has a model whose ${name} is no tensor`);
  return state as StateDict;
}

const isTensor = (value: unknown): boolean => {
  const { shape, dtype, data } = (value ?? {}) as Partial<StateDict[string]>;
  return Array.isArray(shape) && typeof dtype === "string" && ArrayBuffer.isView(data);
};
