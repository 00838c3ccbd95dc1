import { GPT, type GPTOptions } from "@halfstep/models";
import { applyRecipe, type SavedTensor, type StateDict } from "@halfstep/nn";
import type { Runtime } from "@halfstep/tensor";
import {
  type Checkpoint,
  CheckpointError,
  loadModel,
  recipeFor,
  type Stateful,
  savedData,
} from "@halfstep/trainer";
import { checkpointIn } from "@halfstep/trainer/node";
import { savedTokenizer, type Tokenizer, type TokenizerState } from "./tokenizers/tokenizer.js";

/** A model to predict with, in evaluation mode. */
export interface LanguageModel {
  readonly model: GPT;
  readonly tokenizer: Tokenizer;
  /** Name of the recipe that it runs by. */
  readonly precision: string;
  /** The checkpoint that it is from. */
  readonly path: string;
  /** Optimizer steps that it was trained; undefined for a model from elsewhere. */
  readonly step: number | undefined;
}

interface LanguageState {
  readonly config: GPTOptions;
  readonly tokenizer: TokenizerState;
  readonly precision: string;
}

/** What has to be known of a model besides its parameters, as a part of checkpoints. */
export const savedLanguageModel = (
  { config }: GPT,
  tokenizer: Tokenizer,
  precision: string,
): Stateful =>
  savedData({ config, tokenizer: tokenizer.state(), precision } satisfies LanguageState);

/**
 * The best model of a run folder, or that of a checkpoint; with averaged parameters if it was trained with them.
 * @param precision of the model from now on. Default: the one that it was trained in.
 * @throws CheckpointError
 */
export async function openLanguageModel(
  runtime: Runtime,
  directory: string,
  precision?: string,
): Promise<LanguageModel> {
  const checkpoint = await checkpointIn(directory);
  const { path, parts, step } = checkpoint;
  const saved = (parts.language ?? {}) as Partial<LanguageState>;
  if (!saved.config || saved.precision === undefined)
    throw new CheckpointError("misfit", path, "was not saved by this program");
  const tokenizer = savedTokenizer(saved.tokenizer, path);
  const model = loadModel(new GPT(runtime, saved.config), checkpoint, withAverages(parts));
  const name = precision ?? saved.precision;
  applyRecipe(model, recipeFor(name)).eval();
  return { model, tokenizer, precision: name, path, step };
}

/** The state of the model, its parameters replaced by their averages where there are any. */
function withAverages({ model, ema }: Checkpoint["parts"]): StateDict {
  const state = model as StateDict;
  if (ema === undefined) return state;
  const { groups } = ema as { groups: readonly { parameters: Record<string, Averaged> }[] };
  const averages = Object.assign({}, ...groups.map(({ parameters }) => parameters)) as Record<
    string,
    Averaged
  >;
  const tied = { "lmHead.weight": "transformer.wte.weight" } as Readonly<Record<string, string>>;
  return Object.fromEntries(
    Object.entries(state).map(([name, saved]): [string, SavedTensor] => {
      const average = averages[tied[name] ?? name];
      return [name, average ? { ...saved, dtype: "float32", data: average.average } : saved];
    }),
  );
}

interface Averaged {
  readonly average: Float32Array;
}
