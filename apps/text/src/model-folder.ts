import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DataError } from "@halfstep/data";
import { loadTorchStateDict, type Module, type StateDict, torchStateDict } from "@halfstep/nn";
import { writeSafetensorsFile } from "@halfstep/safetensors/node";
import { safetensorsOf } from "@halfstep/trainer";
import { readWeights } from "@halfstep/trainer/node";
import type { MailPart } from "./mails.js";
import type { ModelShape } from "./model-shape.js";
import type { Corpus, TaskName } from "./tasks.js";
import { BertTokenizer } from "./tokenizer.js";
import { readVocabulary } from "./vocabulary.js";
import { readFeatures, type WordFeatures } from "./word-features.js";

// A model as transformers keeps it: config.json, vocab.txt and model.safetensors, with its names. So BERTs from there can be
// gone on from, and those from here be read there.

/** What a model was made for. */
export interface ModelPurpose {
  readonly task: TaskName;
  /** Names of classes, or tags. */
  readonly labels: readonly string[];
  /** Tokens of a text. */
  readonly maxLength: number;
  readonly bag: boolean;
  readonly crf: boolean;
  readonly mailPart: MailPart;
  readonly words: number;
  readonly corpus: Corpus;
  readonly fold: number;
}

export interface SavedModel {
  readonly directory: string;
  readonly shape: ModelShape;
  readonly tokenizer: BertTokenizer;
  /** Of models that tag: what they know of words besides their tokens. */
  readonly features: WordFeatures | undefined;
  /** Undefined for models from elsewhere. */
  readonly purpose: ModelPurpose | undefined;
  readonly state: StateDict;
}

/** Writes a model with what it takes to use it. */
export async function saveModel(
  directory: string,
  model: Module,
  shape: ModelShape,
  { tokenizer, features }: Pick<SavedModel, "tokenizer"> & Partial<Pick<SavedModel, "features">>,
  { task, labels, maxLength, bag, crf, mailPart, words, corpus, fold }: ModelPurpose,
): Promise<void> {
  await mkdir(directory, { recursive: true });
  const config = {
    model_type: "bert",
    architectures: [architectures[task]],
    hidden_act: "gelu",
    ...Object.fromEntries(shapeNames.map((name) => [snakeCase(name), shape[name]])),
    id2label: Object.fromEntries(labels.map((label, i) => [i, label])),
    label2id: Object.fromEntries(labels.map((label, i) => [label, i])),
    halfstep: { task, labels, maxLength, bag, crf, mailPart, words, corpus, fold },
  };
  await writeFile(join(directory, "config.json"), `${JSON.stringify(config, undefined, 2)}\n`);
  await writeFile(join(directory, "vocab.txt"), `${tokenizer.vocabulary.join("\n")}\n`);
  const path = join(directory, featureFile);
  await (features ? writeFile(path, `${features.names.join("\n")}\n`) : rm(path, { force: true }));
  await writeSafetensorsFile(
    join(directory, "model.safetensors"),
    safetensorsOf(await torchStateDict(model)),
    { metadata: { format: "pt" } },
  );
}

/** Reads the folder of a model. @throws DataError where there is none */
export async function openModel(directory: string): Promise<SavedModel> {
  const path = join(directory, "config.json");
  const config = JSON.parse(
    await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
      throw new DataError(path, `cannot be read (${error.code}): give the folder of a model`);
    }),
  ) as Record<string, unknown>;
  const shape = Object.fromEntries(
    shapeNames.map((name) => {
      const value = config[snakeCase(name)];
      if (typeof value !== "number") throw new DataError(path, `has no number ${snakeCase(name)}`);
      return [name, value];
    }),
  ) as unknown as ModelShape;
  return {
    directory,
    shape,
    tokenizer: new BertTokenizer(await readVocabulary(join(directory, "vocab.txt"))),
    features: await readFeatures(join(directory, featureFile)),
    purpose: config.halfstep as ModelPurpose | undefined,
    state: await readWeights(directory),
  };
}

/** Gives a model all of its parameters. */
export const loadParameters = (model: Module, { state }: SavedModel): unknown =>
  loadTorchStateDict(model, state);

/** Gives a model the parameters of another one that has the same body. Returns what has no counterpart there. */
export function loadBody(model: Module, { directory, state }: SavedModel): readonly string[] {
  const { missing } = loadTorchStateDict(model, state, { strict: false });
  if (missing.some((name) => name.startsWith("bert.encoder.")))
    throw new DataError(directory, `lacks ${missing.length} parameters: it is no such BERT`);
  return missing;
}

const featureFile = "features.txt";

const shapeNames = [
  "vocabSize",
  "hiddenSize",
  "numHiddenLayers",
  "numAttentionHeads",
  "intermediateSize",
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
