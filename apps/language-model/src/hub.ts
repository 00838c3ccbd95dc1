import { join } from "node:path";
import { DataError } from "@halfstep/data";
import { readJsonFile } from "@halfstep/data/node";
import { GPT, gptOptionsOf, requireEnoughWeights } from "@halfstep/models";
import {
  applyRecipe,
  loadTorchStateDict,
  type StateDict,
  StateDictError,
  torchStateDict,
} from "@halfstep/nn";
import { writeSafetensorsTo } from "@halfstep/safetensors";
import type { Runtime } from "@halfstep/tensor";
import { auditRange, recipeFor, safetensorsOf } from "@halfstep/trainer";
import { readWeights, writeWholeFolder } from "@halfstep/trainer/node";
import type { LanguageModel } from "./saved-model.js";
import { foreignSubwords } from "./tokenizers/foreign-subwords.js";

export interface HubOptions {
  /** Precision of the model. Default "float32". */
  readonly precision?: string | undefined;
  /** Called with lines about weights beyond the range of the precision. */
  readonly onNote: (line: string) => void;
}

/**
 * Opens a GPT-2 in the format of transformers and the hub: `config.json`, `tokenizer.json`, `model.safetensors`. Sizes are compared
 * with the weights before a model is made.
 * @throws DataError, ConfigError, SafetensorsError
 */
export async function openHubModel(
  runtime: Runtime,
  directory: string,
  { precision = "float32", onNote }: HubOptions,
): Promise<LanguageModel> {
  const source = join(directory, "config.json");
  const options = gptOptionsOf(await readJsonFile(source, { mostBytes: longestConfig }), {
    source,
  });
  const tokens = join(directory, "tokenizer.json");
  const tokenizer = foreignSubwords(await readJsonFile(tokens), options.vocabSize, tokens);
  const weights = await weightsOf(directory);
  const parameters = GPT.parameterCount(options);
  requireEnoughWeights(weights, { name: "a GPT-2", parameters, source });
  const recipe = recipeFor(precision);
  const { compute } = recipe;
  if (compute === "float16" || compute === "bfloat16")
    for (const line of auditRange(weights, compute).advice) onNote(line);
  const model = new GPT(runtime, { ...options, seed: 0 });
  try {
    loadTorchStateDict(model, weights);
  } catch (error) {
    if (!(error instanceof StateDictError)) throw error;
    const { missing, unexpected, misshapen } = error;
    const names = [...missing, ...unexpected, ...misshapen];
    const shown = names.slice(0, 4).join(", ");
    throw new DataError(
      directory,
      `has weights of another model than its config.json says: ${names.length} are missing, left over, or of another shape (${shown}${names.length > 4 ? ", …" : ""})`,
    );
  }
  applyRecipe(model, recipe).eval();
  return { model, tokenizer, precision, path: directory, step: undefined };
}

/** Configurations are a page long. */
const longestConfig = 2 ** 20;

const weightsOf = (directory: string): Promise<StateDict> =>
  readWeights(directory).catch((error: unknown) => {
    // A dtype that no model has.
    if (error instanceof TypeError) throw new DataError(directory, error.message);
    throw error;
  });

/** Writes a model in the format of transformers and the hub: `GPT2LMHeadModel.from_pretrained(directory)`. */
export async function saveHubModel(
  directory: string,
  { model, tokenizer }: Pick<LanguageModel, "model" | "tokenizer">,
): Promise<void> {
  const { config } = model;
  if (!config.bias)
    throw new DataError(directory, "cannot have a model without biases: GPT-2 always has them");
  const json = {
    model_type: "gpt2",
    architectures: ["GPT2LMHeadModel"],
    activation_function: config.activation,
    vocab_size: config.vocabSize,
    n_positions: config.blockSize,
    n_embd: config.nEmbd,
    n_layer: config.nLayer,
    n_head: config.nHead,
    n_inner: config.nInner,
    layer_norm_epsilon: config.layerNormEps,
    attn_pdrop: config.attnDropout,
    embd_pdrop: config.embdDropout,
    resid_pdrop: config.dropout,
    initializer_range: config.initializerRange,
    tie_word_embeddings: true,
  };
  // The head is the embedding: transformers ties it, and its files have it once.
  const { "lm_head.weight": _, ...state } = await torchStateDict(model);
  const tensors = safetensorsOf(state);
  await writeWholeFolder(directory, async (folder) => {
    const writeJson = (name: string, value: unknown): Promise<void> =>
      folder.write(name, `${JSON.stringify(value, undefined, 2)}\n`);
    await writeJson("config.json", json);
    await writeJson("tokenizer.json", tokenizer.json);
    await writeJson("tokenizer_config.json", { tokenizer_class: "PreTrainedTokenizerFast" });
    await folder.write("model.safetensors", (sink) =>
      writeSafetensorsTo(sink, tensors, { metadata: { format: "pt" } }),
    );
  });
}
