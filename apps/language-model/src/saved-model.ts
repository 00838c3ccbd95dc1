import {
  activationNames,
  ConfigFields,
  GPT,
  type GPTOptions,
  requireEnoughWeights,
} from "@halfstep/models";
import { applyRecipe, Lora, type SavedTensor, type StateDict } from "@halfstep/nn";
import type { Runtime } from "@halfstep/tensor";
import {
  type Checkpoint,
  CheckpointError,
  loadModel,
  modelState,
  type Stateful,
  savedData,
  savedRecipe,
} from "@halfstep/trainer";
import { checkpointIn } from "@halfstep/trainer/node";
import { type LanguageNet, type LstmConfig, LstmModel } from "./lstm-model.js";
import { savedTokenizer, type Tokenizer, type TokenizerState } from "./tokenizers/tokenizer.js";

/** A model to predict with, in evaluation mode. */
export interface LanguageModel {
  readonly model: LanguageNet;
  readonly tokenizer: Tokenizer;
  /** Name of the recipe that it runs by. */
  readonly precision: string;
  /** The checkpoint that it is from. */
  readonly path: string;
  /** Number of optimizer steps of its training; undefined for a model from elsewhere. */
  readonly step: number | undefined;
}

interface LanguageState {
  readonly config: Omit<GPTOptions, "seed"> | LstmConfig;
  readonly tokenizer: TokenizerState;
  readonly precision: string;
  readonly lora?: SavedAdapters | undefined;
}

/** What is needed to make adapters again, and the model that they were trained on. */
type SavedAdapters = Pick<Lora, "rank" | "alpha" | "targets"> & {
  readonly base?: string | undefined;
};

/** The description of a model besides its parameters, as a part of checkpoints. */
export const savedLanguageModel = (
  { config }: LanguageNet,
  tokenizer: Tokenizer,
  precision: string,
  { lora, base }: { readonly lora?: Lora | undefined; readonly base?: string | undefined } = {},
): Stateful =>
  savedData({
    ...{ config, tokenizer: tokenizer.state(), precision },
    ...(lora && { lora: { rank: lora.rank, alpha: lora.alpha, targets: lora.targets, base } }),
  } satisfies LanguageState);

/**
 * The best model of a run folder, or that of a checkpoint; with averaged parameters if it was trained with them.
 * @param precision The precision to run in. Default: that of its training.
 * @throws CheckpointError, ConfigError, DataError
 */
export const openLanguageModel = async (
  runtime: Runtime,
  directory: string,
  precision?: string,
): Promise<LanguageModel> => languageModelOf(runtime, await checkpointIn(directory), precision);

/** The model of a checkpoint. The contents of files are validated before use. */
export function languageModelOf(
  runtime: Runtime,
  checkpoint: Checkpoint,
  precision?: string,
): LanguageModel {
  const { path, step } = checkpoint;
  const { model, lora, tokenizer, trained } = openedModel(runtime, checkpoint);
  const recipe = savedRecipe(precision ?? trained, checkpoint);
  lora?.merge();
  applyRecipe(model, recipe).eval();
  return { model, tokenizer, precision: precision ?? trained, path, step };
}

/**
 * The adapters of a training with `--lora`, beside the model that they were trained on.
 * @throws CheckpointError, also where the model has none
 */
export async function openAdapters(
  runtime: Runtime,
  directory: string,
): Promise<{ readonly lora: Lora; readonly base: string | undefined }> {
  const checkpoint = await checkpointIn(directory);
  const { lora, base } = openedModel(runtime, checkpoint);
  if (!lora)
    throw new CheckpointError(
      "misfit",
      checkpoint.path,
      "has no adapters: it was trained whole; train with --lora, or leave out --adapters",
    );
  return { lora, base };
}

/** A model as it was saved, with its adapters not merged. */
interface OpenedModel {
  readonly model: LanguageNet;
  readonly lora: Lora | undefined;
  /** The folder of the model that the adapters were trained on. */
  readonly base: string | undefined;
  readonly tokenizer: Tokenizer;
  /** The precision of its training. */
  readonly trained: string;
}

function openedModel(runtime: Runtime, checkpoint: Checkpoint): OpenedModel {
  const { path, parts } = checkpoint;
  if (parts.language === undefined)
    throw new CheckpointError("misfit", path, "was not saved by this program");
  const source = `${path}, language`;
  const fields = new ConfigFields(parts.language, source);
  const state = withAverages(checkpoint);
  const { vocabSize, name, parameters, make } = described(runtime, fields.fields("config"));
  requireEnoughWeights(state, { name, parameters, source });
  const tokenizer = savedTokenizer(fields.fields("tokenizer"), vocabSize, source);
  const trained = fields.text("precision");
  const model = loadModel<LanguageNet>(make, checkpoint, state);
  if (!fields.has("lora") || !(model instanceof GPT))
    return { model, tokenizer, trained, lora: undefined, base: undefined };
  const adapters = fields.fields("lora");
  const base = adapters.has("base") ? adapters.text("base") : undefined;
  return { model, tokenizer, trained, base, lora: savedAdapters(model, adapters, checkpoint) };
}

/** The model that a configuration describes. */
function described(runtime: Runtime, fields: ConfigFields) {
  if (fields.has("arch")) {
    const config = lstmConfigIn(fields);
    return {
      ...{ name: "an LSTM", vocabSize: config.vocabSize },
      parameters: LstmModel.parameterCount(config),
      make: () => new LstmModel(runtime, { ...config, seed: 0 }),
    };
  }
  const config = configIn(fields);
  return {
    ...{ name: "a GPT", vocabSize: config.vocabSize, parameters: GPT.parameterCount(config) },
    make: () => new GPT(runtime, { ...config, seed: 0 }),
  };
}

const lstmConfigIn = (fields: ConfigFields): LstmConfig => ({
  arch: fields.oneOf("arch", ["lstm"]),
  vocabSize: fields.count("vocabSize"),
  blockSize: fields.count("blockSize"),
  layers: fields.count("layers"),
  width: fields.count("width"),
  dropout: fields.fraction("dropout", 0),
});

/** The adapters of a checkpoint, on the model that they were trained on. */
function savedAdapters(model: GPT, fields: ConfigFields, { path, parts }: Checkpoint): Lora {
  const rank = fields.count("rank");
  const most = Math.max(model.config.nEmbd, model.config.nInner);
  if (rank > most) fields.refuse(`has adapters of rank ${rank}, and layers of ${most}`);
  const alpha = fields.positive("alpha", rank);
  try {
    const lora = new Lora(model, { rank, alpha, targets: fields.texts("targets"), seed: 0 });
    lora.loadStateDict(parts.lora as StateDict);
    return lora;
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    throw new CheckpointError("misfit", path, `has other adapters: ${error.message}`, error);
  }
}

/** As a GPT keeps its options: all of them are there. */
const configIn = (
  fields: ConfigFields,
): Omit<GPTOptions, "seed"> & { readonly vocabSize: number } => ({
  vocabSize: fields.count("vocabSize"),
  blockSize: fields.count("blockSize"),
  nLayer: fields.count("nLayer"),
  nHead: fields.count("nHead"),
  nEmbd: fields.count("nEmbd"),
  nInner: fields.count("nInner"),
  activation: fields.oneOf("activation", activationNames),
  dropout: fields.fraction("dropout", 0),
  embdDropout: fields.fraction("embdDropout", 0),
  attnDropout: fields.fraction("attnDropout", 0),
  layerNormEps: fields.positive("layerNormEps", 1e-5),
  bias: fields.truth("bias"),
  initializerRange: fields.positive("initializerRange", 0.02),
});

/** The state of the model, its parameters replaced by their averages where there are any. */
function withAverages(checkpoint: Checkpoint): StateDict {
  const state = modelState(checkpoint);
  const { path, parts } = checkpoint;
  if (parts.ema === undefined) return state;
  const averages = averagesIn(parts.ema);
  const tied = { "lmHead.weight": "transformer.wte.weight" } as Readonly<Record<string, string>>;
  return Object.fromEntries(
    Object.entries(state).map(([name, saved]): [string, SavedTensor] => {
      const average = averages.get(tied[name] ?? name);
      if (average === undefined) return [name, saved];
      if (average instanceof Float32Array && average.length === saved.data.length)
        return [name, { ...saved, dtype: "float32", data: average }];
      throw new CheckpointError("misfit", path, `has no average of ${name} that fits it`);
    }),
  );
}

/** Averages by the names of their parameters; what is none is undefined. */
const averagesIn = (ema: unknown): ReadonlyMap<string, unknown> => {
  const { groups } = fieldsOf(ema);
  return new Map(
    (Array.isArray(groups) ? groups : []).flatMap((group) =>
      Object.entries(fieldsOf(fieldsOf(group).parameters)).map(
        ([name, averaged]) => [name, fieldsOf(averaged).average ?? null] as const,
      ),
    ),
  );
};

const fieldsOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
