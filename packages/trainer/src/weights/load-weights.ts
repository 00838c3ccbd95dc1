import { loadTorchStateDict, type Module, type StateDict, StateDictError } from "@halfstep/nn";
import { CheckpointError } from "../checkpoint/checkpoint-error.js";
import { describeMisfits } from "./describe-misfits.js";

/**
 * Loads weights of others into a model by torch's names and layouts: all of them, or none.
 * @param source The file or folder that they are from, which errors name.
 * @throws CheckpointError where they are of another model
 *
 * @example
 * loadWeights(model, await readWeights("unet_carvana.pth"), "unet_carvana.pth");
 */
export function loadWeights(model: Module, weights: StateDict, source: string): void {
  try {
    loadTorchStateDict(model, weights);
  } catch (error) {
    if (!(error instanceof StateDictError)) throw error;
    throw new CheckpointError(
      "misfit",
      source,
      `has weights of another model: ${describeMisfits(model, weights, error)}`,
      error,
    );
  }
}
