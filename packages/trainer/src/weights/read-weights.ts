import type { StateDict } from "@halfstep/nn";
import { openWeights } from "@halfstep/torch-files";
import { stateDictOf } from "./state-dict.js";

/**
 * Reads weights as people have them: a safetensors file, a checkpoint of torch (`.pt`, `.pth`, `.th`, `.bin`), an index of several of
 * these, or a folder with one of them, such as Hugging Face's. Nothing in a checkpoint is executed.
 *
 * @throws SafetensorsError or TorchFileError for a malformed file, and for one of another kind; errors of the system as they are;
 * TypeError as `stateDictOf` throws it
 * @example
 * const weights = await readWeights("bert-base-uncased");
 * for (const line of auditRange(weights, "float16").advice) console.warn(line);
 * const { missing, unexpected, misshapen } = loadTorchStateDict(model, weights, { strict: false });
 */
export async function readWeights(path: string): Promise<StateDict> {
  const weights = await openWeights(path);
  try {
    return stateDictOf(await weights.readAll());
  } finally {
    await weights.close();
  }
}
