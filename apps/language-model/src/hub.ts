import { existsSync } from "node:fs";
import { join } from "node:path";
import { DataError } from "@halfstep/data";
import { readJsonFile, readTextFile } from "@halfstep/data/node";
import { GPT, type GPTOptions, gptOptionsOf, requireEnoughWeights } from "@halfstep/models";
import {
  applyRecipe,
  describeStateDictKeys,
  loadTorchStateDict,
  type StateDict,
  StateDictError,
  torchStateDict,
} from "@halfstep/nn";
import { writeSafetensorsTo } from "@halfstep/safetensors";
import type { Runtime } from "@halfstep/tensor";
import { noteRange, recipeFor, safetensorsOf } from "@halfstep/trainer";
import { type OnnxFlag, onnxFile } from "@halfstep/trainer/cli";
import {
  addAdapter,
  type FileContent,
  readPeftAdapter,
  readWeights,
  writeWholeFolder,
} from "@halfstep/trainer/node";
import type { LanguageNet } from "./lstm-model.js";
import type { LanguageModel } from "./saved-model.js";
import { byteLevel } from "./tokenizers/byte-pairs.js";
import { foreignSubwords } from "./tokenizers/foreign-subwords.js";
import type { Subwords, TokenizerJson } from "./tokenizers/subwords.js";

export interface HubOptions {
  /** Precision of the model. Default "float32". */
  readonly precision?: string | undefined;
  /** A folder of PEFT's adapters, which are merged into the weights. */
  readonly peft?: string | undefined;
  /** Where the weights lie in a checkpoint of torch. */
  readonly key?: string | undefined;
  /** Called with lines about weights beyond the range of the precision. */
  readonly onNote: (line: string) => void;
}

/** A GPT-2 in the format of transformers and the hub, before a model is made of it. */
export interface HubFolder {
  readonly directory: string;
  readonly config: Omit<GPTOptions, "seed"> & { readonly blockSize: number };
  readonly tokenizer: Subwords;
  readonly weights: StateDict;
}

/**
 * Reads a GPT-2 in the format of transformers and the hub: `config.json`; `tokenizer.json`, or `vocab.json` and `merges.txt`; weights of
 * safetensors or torch. Sizes are compared with the weights before a model is made.
 * @throws DataError, ConfigError, SafetensorsError, TorchFileError
 */
export async function readHubFolder(
  directory: string,
  { key }: Pick<HubOptions, "key"> = {},
): Promise<HubFolder> {
  const source = join(directory, "config.json");
  const config = gptOptionsOf(await readJsonFile(source, { mostBytes: longestConfig }), {
    source,
  });
  const tokenizer = await tokenizerIn(directory, config.vocabSize);
  const weights = await readWeights(directory, { key });
  const parameters = GPT.parameterCount(config);
  requireEnoughWeights(weights, { name: "a GPT-2", parameters, source });
  return { directory, config, tokenizer, weights };
}

/**
 * Loads the weights of a folder into a model of its options.
 * @throws DataError where they are of another model
 */
export function loadHubWeights(
  model: GPT,
  { directory, weights }: Pick<HubFolder, "directory" | "weights">,
): void {
  try {
    loadTorchStateDict(model, weights);
  } catch (error) {
    if (!(error instanceof StateDictError)) throw error;
    throw new DataError(
      directory,
      `has weights of another model than its config.json says: ${describeStateDictKeys(error)}`,
    );
  }
}

/** Opens a GPT-2 of the hub to predict with. @throws as {@link readHubFolder} and {@link loadHubWeights} */
export async function openHubModel(
  runtime: Runtime,
  directory: string,
  { precision = "float32", peft, key, onNote }: HubOptions,
): Promise<LanguageModel> {
  const folder = await readHubFolder(directory, { key });
  const { config, tokenizer, weights } = folder;
  const recipe = recipeFor(precision);
  noteRange(weights, recipe, onNote);
  const model = new GPT(runtime, { ...config, seed: 0 });
  loadHubWeights(model, folder);
  if (peft !== undefined) addAdapter(model, await readPeftAdapter(peft)).merge();
  applyRecipe(model, recipe).eval();
  return { model, tokenizer, precision, path: directory, step: undefined };
}

async function tokenizerIn(directory: string, vocabSize: number): Promise<Subwords> {
  const path = join(directory, "tokenizer.json");
  const vocab = join(directory, "vocab.json");
  if (existsSync(path) || !existsSync(vocab))
    return foreignSubwords(await readJsonFile(path), vocabSize, path);
  const merges = join(directory, "merges.txt");
  const text = await readTextFile(merges);
  const pairs = text.split(/\r?\n/).filter((line) => line !== "" && !line.startsWith("#version"));
  // What is in it is checked as if it were in tokenizer.json.
  const ids = (await readJsonFile(vocab)) as TokenizerJson["model"]["vocab"];
  return foreignSubwords(byteLevel(ids, pairs), vocabSize, vocab, merges);
}

/** Configurations are a page long. */
const longestConfig = 2 ** 20;

/**
 * Writes a model in the format of transformers and the hub: `GPT2LMHeadModel.from_pretrained(directory)`. With `onnx` there is also a
 * `model.onnx`. An LSTM is written as `model.onnx` and its tokenizer alone.
 * @returns the names of the files
 */
export async function saveHubModel(
  directory: string,
  { model, tokenizer }: Pick<LanguageModel, "model" | "tokenizer">,
  flag: OnnxFlag = {},
): Promise<readonly string[]> {
  const onnx = flag.onnx ? await onnxOf(model, flag) : undefined;
  if (!(model instanceof GPT) && !onnx)
    throw new DataError(
      directory,
      "cannot have an LSTM, as the format is that of GPT-2: write an ONNX file by --onnx",
    );
  const weights = model instanceof GPT ? await hubWeights(model, directory) : undefined;
  return writeWholeFolder(directory, async (folder) => {
    const written: string[] = [];
    const write = async (name: string, content: FileContent): Promise<void> => {
      await folder.write(name, content);
      written.push(name);
    };
    const writeJson = (name: string, value: unknown): Promise<void> =>
      write(name, `${JSON.stringify(value, undefined, 2)}\n`);
    if (weights) await writeJson("config.json", weights.config);
    await writeJson("tokenizer.json", tokenizer.json);
    await writeJson("tokenizer_config.json", { tokenizer_class: "PreTrainedTokenizerFast" });
    if (weights)
      await write("model.safetensors", (sink) =>
        writeSafetensorsTo(sink, weights.tensors, { metadata: { format: "pt" } }),
      );
    if (onnx) await write("model.onnx", onnx);
    return written;
  });
}

/** The configuration and the tensors of a GPT-2, as transformers has them. */
async function hubWeights(model: GPT, directory: string) {
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
  return { config: json, tensors };
}

/** A file that takes `input_ids` of any batch and length, and gives the `logits` of the token after each. */
const onnxOf = (model: LanguageNet, flag: OnnxFlag): Promise<Uint8Array<ArrayBuffer>> =>
  onnxFile(model, model.exampleInputs(), flag, {
    inputNames: ["input_ids"],
    outputNames: ["logits"],
    axes: { input_ids: { 0: "batch", 1: "length" } },
  });
