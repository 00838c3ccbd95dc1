import type { StateDict } from "@halfstep/nn";
import { openWeights, type WeightsOptions } from "@halfstep/torch-files";
import { CheckpointError } from "../checkpoint/checkpoint-error.js";
import { stateDictOf } from "./state-dict.js";

/**
 * Reads weights as people have them: a safetensors file, a checkpoint of torch (`.pt`, `.pth`, `.th`, `.bin`), an index of several of
 * these, or a folder with one of them, such as Hugging Face's. Nothing in a checkpoint is executed.
 *
 * @throws SafetensorsError or TorchFileError for a malformed file, and for one of another kind; CheckpointError for a dtype that no model
 * has; errors of the system as they are
 * @example
 * const weights = await readWeights("bert-base-uncased");
 * for (const line of auditRange(weights, "float16").advice) console.warn(line);
 * const { missing, unexpected, misshapen } = loadTorchStateDict(model, weights, { strict: false });
 */
export async function readWeights(path: string, options: WeightsOptions = {}): Promise<StateDict> {
  const weights = await openWeights(path, options);
  try {
    return stateDictOf(await weights.readAll());
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new CheckpointError("misfit", path, `cannot be loaded: ${error.message}`, error);
  } finally {
    await weights.close();
  }
}
