import { existsSync, statSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { DataError } from "@halfstep/data";
import { readJsonFile } from "@halfstep/data/node";
import { BertModel, bertOptionsOf, requireEnoughWeights } from "@halfstep/models";
import {
  describeStateDictKeys,
  loadTorchStateDict,
  type Module,
  type StateDict,
  StateDictError,
  torchStateDict,
} from "@halfstep/nn";
import { writeSafetensorsTo } from "@halfstep/safetensors";
import { safetensorsOf } from "@halfstep/trainer";
import {
  addAdapter,
  type PeftAdapter,
  readWeights,
  writeWholeFolder,
} from "@halfstep/trainer/node";
import { type ModelPurpose, purposeOf } from "./model-purpose.js";
import type { ModelShape } from "./model-shape.js";
import { readForeignAdapter } from "./peft.js";
import type { TaskName } from "./tasks.js";
import { BertTokenizer } from "./tokenizer.js";
import { readVocabulary } from "./vocabulary.js";
import { readFeatures, type WordFeatures } from "./word-features.js";

// A model in the format of transformers: config.json, vocab.txt and model.safetensors, with its names. So BERTs of
// transformers can be trained further here, and transformers can read models of this program.

export interface SavedModel {
  readonly directory: string;
  readonly shape: ModelShape;
  readonly tokenizer: BertTokenizer;
  /** Features of words besides their tokens, for models that tag. */
  readonly features: WordFeatures | undefined;
  /** Undefined for models without a task. */
  readonly purpose: ModelPurpose | undefined;
  /** Whether it was not trained by this program. */
  readonly isForeign: boolean;
  readonly state: StateDict;
  /** Adapters of PEFT's, which are merged into the parameters when they are loaded. */
  readonly adapter: PeftAdapter | undefined;
}

/** How a model is opened. */
export interface OpenOptions {
  /** Whether words are in lower case. Default: as the folder says. */
  readonly lowerCase?: boolean | undefined;
  /** A folder of PEFT's adapters, which give the model their task. */
  readonly peft?: string | undefined;
  /** Where the weights lie in a checkpoint of torch. */
  readonly key?: string | undefined;
}

/** Writes a model with the files for its use. */
export async function saveModel(
  directory: string,
  model: Module,
  shape: ModelShape,
  { tokenizer, features }: Pick<SavedModel, "tokenizer"> & Partial<Pick<SavedModel, "features">>,
  purpose: ModelPurpose,
): Promise<void> {
  const { task, labels, maxLength, bag, crf, mailPart, words, corpus, fold } = purpose;
  const { multiLabel, pairs, documentContext, ownData } = purpose;
  const config = {
    model_type: "bert",
    architectures: [architectures[task]],
    ...Object.fromEntries(shapeNames.map((name) => [snakeCase(name), shape[name]])),
    id2label: Object.fromEntries(labels.map((label, i) => [i, label])),
    label2id: Object.fromEntries(labels.map((label, i) => [label, i])),
    ...(multiLabel && { problem_type: "multi_label_classification" }),
    halfstep: {
      ...{ task, labels, maxLength, bag, crf, mailPart, words, corpus, fold },
      ...{ multiLabel, pairs, documentContext, ownData },
    },
  };
  const tensors = safetensorsOf(await torchStateDict(model));
  await writeWholeFolder(directory, async (folder) => {
    const writeJson = (name: string, value: unknown): Promise<void> =>
      folder.write(name, `${JSON.stringify(value, undefined, 2)}\n`);
    await writeJson("config.json", config);
    await writeJson("tokenizer_config.json", {
      tokenizer_class: "BertTokenizer",
      do_lower_case: tokenizer.isLowerCase,
    });
    await folder.write("vocab.txt", `${tokenizer.vocabulary.join("\n")}\n`);
    if (features) await folder.write(featureFile, `${features.names.join("\n")}\n`);
    await folder.write("model.safetensors", (sink) =>
      writeSafetensorsTo(sink, tensors, { metadata: { format: "pt" } }),
    );
  });
  // Those of an earlier model.
  if (!features) await rm(join(directory, featureFile), { force: true });
}

/**
 * Reads the folder of a model. Sizes are compared with the weights before a model is made.
 * @throws DataError, ConfigError; CheckpointError for adapters that cannot be read
 */
export async function openModel(
  directory: string,
  { lowerCase, peft, key }: OpenOptions = {},
): Promise<SavedModel> {
  if (statSync(directory, { throwIfNoEntry: false })?.isFile())
    throw new DataError(
      directory,
      "is a file: name its folder, which has config.json and vocab.txt beside the weights",
    );
  const source = configOf(directory);
  const own = await readJsonFile(source, { mostBytes: longestConfig });
  const foreign = peft === undefined ? undefined : await readForeignAdapter(peft);
  const config = foreign ? { ...(own as object), ...foreign.config, halfstep: undefined } : own;
  const { classifierDropout: _, ...shape } = bertOptionsOf(config, { source });
  const purpose = purposeOf(config, source);
  const vocabulary = await readVocabulary(join(directory, "vocab.txt"));
  if (vocabulary.length > shape.vocabSize)
    throw new DataError(
      source,
      `has vocab_size ${shape.vocabSize}, and vocab.txt ${vocabulary.length} tokens: they are of two models`,
    );
  const features = await readFeatures(join(directory, featureFile));
  const state = await readWeights(directory, { key });
  requireEnoughWeights(state, { name: "a BERT", parameters: parametersOf(shape), source });
  const classes = state["classifier.weight"]?.shape[0];
  if (!foreign && purpose && purpose.task !== "mlm" && classes !== purpose.labels.length)
    throw new DataError(
      source,
      `has ${purpose.labels.length} labels, and its weights a head for ${classes ?? "none"}: restore the one or the other`,
    );
  return {
    ...{ directory, shape, features, purpose, state, adapter: foreign?.adapter },
    isForeign: foreign !== undefined || !("halfstep" in (config as object)),
    tokenizer: new BertTokenizer(
      vocabulary,
      lowerCase ?? (await readLowerCase(directory, vocabulary)),
    ),
  };
}

/** The configuration in a folder: transformers', or that of its predecessors, which Google's files have, too. */
const configOf = (directory: string): string => {
  const [first, older] = ["config.json", "bert_config.json"].map((name) => join(directory, name));
  return (!existsSync(first as string) && existsSync(older as string) ? older : first) as string;
};

/** A configuration that lists a label for each of a hundred thousand classes is no longer. */
const longestConfig = 2 ** 24;

/** Of an encoder without its pooler, which not all models have. */
const parametersOf = (shape: ModelShape): number =>
  BertModel.parameterCount(shape) - (shape.hiddenSize + 1) * shape.hiddenSize;

/** Whether a foreign tokenizer has words in lower case only: as its configuration says, else if no word of the vocabulary has a capital. */
async function readLowerCase(directory: string, vocabulary: readonly string[]): Promise<boolean> {
  const path = join(directory, "tokenizer_config.json");
  if (!existsSync(path))
    return !vocabulary.some((token) => !/^\[.+\]$/.test(token) && token !== token.toLowerCase());
  const config = await readJsonFile(path);
  const { do_lower_case: value = true } = (config ?? {}) as { do_lower_case?: unknown };
  if (typeof value !== "boolean")
    throw new DataError(path, `has a do_lower_case that is neither true nor false`);
  return value;
}

/**
 * Loads all parameters of a model, and merges adapters into it.
 * @throws DataError where they are of another model; CheckpointError where the adapters are
 */
export function loadParameters(model: Module, { directory, state, adapter }: SavedModel): void {
  if (!adapter) {
    fitting(directory, () => loadTorchStateDict(model, state));
    return;
  }
  const { missing, misshapen } = fitting(directory, () =>
    loadTorchStateDict(model, state, { strict: false }),
  );
  const isOfAdapter = (name: string): boolean =>
    adapter.trained.some((whole) => name.startsWith(`${whole}.`));
  const lacking = [...missing, ...misshapen].filter((name) => !isOfAdapter(name));
  if (lacking.length > 0)
    throw new DataError(
      directory,
      `is no model for the adapters of ${adapter.directory}: ${lacking[0]} is missing, or of another shape`,
    );
  addAdapter(model, adapter).merge();
}

/** The result of loading another model's body. */
export interface LoadedBody {
  /** Names of parameters with their initial values. */
  readonly fresh: readonly string[];
  /** Whether the other model's head, for other labels, was left out. */
  readonly isHeadDropped: boolean;
}

/**
 * Loads the parameters of another model with the same body into a model with other labels. A head for other labels is left
 * out.
 * @throws DataError where a part of the body is missing, of another shape, or left over
 */
export function loadBody(
  model: Module,
  { directory, purpose, state }: SavedModel,
  labels: readonly string[],
): LoadedBody {
  const isOfOthers = purpose !== undefined && purpose.labels.join("\n") !== labels.join("\n");
  const kept = isOfOthers
    ? Object.fromEntries(Object.entries(state).filter(([name]) => name.startsWith("bert.")))
    : state;
  const { missing, unexpected, misshapen } = fitting(directory, () =>
    loadTorchStateDict(model, kept, { strict: false }),
  );
  const ofBody = (names: readonly string[]): readonly string[] =>
    names.filter((name) => /^bert\.(embeddings|encoder)\./.test(name));
  const strange = describeStateDictKeys({
    missing: ofBody(missing),
    unexpected: ofBody(unexpected),
    misshapen: ofBody(misshapen),
  });
  if (strange !== "")
    throw new DataError(
      directory,
      `has the body of another BERT than its config.json says: ${strange}`,
    );
  const hadHead = Object.keys(state).length > Object.keys(kept).length;
  return {
    fresh: [...missing, ...misshapen],
    isHeadDropped: hadHead || misshapen.length > 0,
  };
}

function fitting<T>(directory: string, load: () => T): T {
  try {
    return load();
  } catch (error) {
    if (!(error instanceof StateDictError)) throw error;
    throw new DataError(
      directory,
      `has weights of another model than its config.json says: ${describeStateDictKeys(error)}`,
    );
  }
}

const featureFile = "features.txt";

const shapeNames = [
  "vocabSize",
  "hiddenSize",
  "numHiddenLayers",
  "numAttentionHeads",
  "intermediateSize",
  "hiddenAct",
  "maxPositionEmbeddings",
  "hiddenDropoutProb",
  "attentionProbsDropoutProb",
  "typeVocabSize",
  "layerNormEps",
  "initializerRange",
  "padTokenId",
] as const satisfies readonly (keyof ModelShape)[];

const snakeCase = (name: string): string => name.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`);

const architectures: Readonly<Record<TaskName, string>> = {
  spam: "BertForSequenceClassification",
  sentences: "BertForSequenceClassification",
  tags: "BertForTokenClassification",
  mlm: "BertForMaskedLM",
};
