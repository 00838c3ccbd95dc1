import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DataError } from "@halfstep/data";
import { unreadable } from "@halfstep/data/node";
import { GPT } from "@halfstep/models";
import { applyRecipe, loadTorchStateDict, torchStateDict } from "@halfstep/nn";
import { writeSafetensorsFile } from "@halfstep/safetensors/node";
import type { Runtime } from "@halfstep/tensor";
import { auditRange, recipeFor, safetensorsOf } from "@halfstep/trainer";
import { readWeights } from "@halfstep/trainer/node";
import type { LanguageModel } from "./saved-model.js";
import { Subwords } from "./tokenizers/subwords.js";

/** `config.json` of a GPT-2 on Hugging Face: what of it this program needs. */
interface HubConfig {
  readonly model_type: "gpt2";
  readonly vocab_size: number;
  readonly n_positions: number;
  readonly n_embd: number;
  readonly n_layer: number;
  readonly n_head: number;
}

export interface HubOptions {
  /** Of the model from now on. Default "float32". */
  readonly precision?: string | undefined;
  /** Told of weights that the precision cannot hold. */
  readonly onNote: (line: string) => void;
}

/**
 * A GPT-2 as transformers saves it, and the hub has it: `config.json`, `tokenizer.json`, `model.safetensors`.
 * @throws DataError, SafetensorsError, StateDictError
 */
export async function openHubModel(
  runtime: Runtime,
  directory: string,
  { precision = "float32", onNote }: HubOptions,
): Promise<LanguageModel> {
  const config = checkedConfig(await readJson(directory, "config.json"), directory);
  const tokenizer = new Subwords((await readJson(directory, "tokenizer.json")) as Subwords["json"]);
  const weights = await readWeights(directory);
  const recipe = recipeFor(precision);
  const { compute } = recipe;
  if (compute === "float16" || compute === "bfloat16")
    for (const line of auditRange(weights, compute).advice) onNote(line);
  const model = new GPT(runtime, {
    seed: 0,
    vocabSize: config.vocab_size,
    blockSize: config.n_positions,
    nEmbd: config.n_embd,
    nLayer: config.n_layer,
    nHead: config.n_head,
  });
  loadTorchStateDict(model, weights);
  applyRecipe(model, recipe).eval();
  return { model, tokenizer, precision, path: directory, step: undefined };
}

/** Writes a model so that transformers and the hub can have it: `GPT2LMHeadModel.from_pretrained(directory)`. */
export async function saveHubModel(
  directory: string,
  { model, tokenizer }: Pick<LanguageModel, "model" | "tokenizer">,
): Promise<void> {
  const { vocabSize, blockSize, nEmbd, nLayer, nHead, dropout, bias } = model.config;
  if (!bias)
    throw new DataError(directory, "cannot have a model without biases: GPT-2 always has them");
  const config: HubConfig & Readonly<Record<string, unknown>> = {
    model_type: "gpt2",
    architectures: ["GPT2LMHeadModel"],
    activation_function: "gelu_new",
    vocab_size: vocabSize,
    n_positions: blockSize,
    n_embd: nEmbd,
    n_layer: nLayer,
    n_head: nHead,
    layer_norm_epsilon: 1e-5,
    attn_pdrop: dropout,
    embd_pdrop: dropout,
    resid_pdrop: dropout,
    tie_word_embeddings: true,
  };
  await mkdir(directory, { recursive: true });
  const writeJson = (name: string, value: unknown): Promise<void> =>
    writeFile(join(directory, name), `${JSON.stringify(value, undefined, 2)}\n`);
  await writeJson("config.json", config);
  await writeJson("tokenizer.json", tokenizer.json);
  await writeJson("tokenizer_config.json", { tokenizer_class: "PreTrainedTokenizerFast" });
  // The head is the embedding: transformers ties it, and its files have it once.
  const { "lm_head.weight": _, ...state } = await torchStateDict(model);
  await writeSafetensorsFile(join(directory, "model.safetensors"), safetensorsOf(state), {
    metadata: { format: "pt" },
  });
}

async function readJson(directory: string, name: string): Promise<unknown> {
  const path = join(directory, name);
  const text = await readFile(path, "utf8").catch((error: unknown) => {
    throw unreadable(path, error);
  });
  try {
    return JSON.parse(text);
  } catch {
    throw new DataError(path, "is no JSON");
  }
}

function checkedConfig(value: unknown, directory: string): HubConfig {
  const config = (value ?? {}) as Partial<HubConfig> & Readonly<Record<string, unknown>>;
  const refuse = (problem: string): never => {
    throw new DataError(join(directory, "config.json"), problem);
  };
  if (config.model_type !== "gpt2")
    refuse(`is of a model of type ${JSON.stringify(config.model_type)}: this program runs gpt2`);
  const odd = (["vocab_size", "n_positions", "n_embd", "n_layer", "n_head"] as const).find(
    (name) => !(Number.isSafeInteger(config[name]) && Number(config[name]) >= 1),
  );
  if (odd !== undefined) refuse(`has ${odd} ${JSON.stringify(config[odd])}: it must be a count`);
  const fixed = {
    activation_function: "gelu_new",
    layer_norm_epsilon: 1e-5,
    scale_attn_weights: true,
    scale_attn_by_inverse_layer_idx: false,
    tie_word_embeddings: true,
  } as const;
  for (const [name, expected] of Object.entries(fixed))
    if (config[name] !== undefined && config[name] !== expected)
      refuse(`has ${name} ${JSON.stringify(config[name])}: this program has ${expected}`);
  return config as HubConfig;
}
