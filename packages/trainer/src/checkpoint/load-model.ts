import type { Module, StateDict } from "@halfstep/nn";
import type { Checkpoint } from "./checkpoint.js";
import { CheckpointError } from "./checkpoint-error.js";

/**
 * Gives a model the parameters and buffers of a checkpoint's model.
 * @param state others in their place, such as averages
 * @throws CheckpointError where it has other ones
 *
 * @example
 * const checkpoint = await checkpointIn("runs/images");
 * loadModel(model, checkpoint).eval();
 */
export function loadModel<M extends Pick<Module, "loadStateDict">>(
  model: M,
  { path, parts }: Checkpoint,
  state: StateDict | undefined = parts.model as StateDict | undefined,
): M {
  if (typeof state !== "object" || state === null)
    throw new CheckpointError("misfit", path, "has no model: it was saved by another program");
  try {
    model.loadStateDict(state);
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    throw new CheckpointError("misfit", path, `has another model: ${error.message}`, error);
  }
  return model;
}
