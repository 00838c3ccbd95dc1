import type { Runtime, Tensor } from "@halfstep/tensor";
import { evaluate, type TrainingPrecision } from "@halfstep/trainer";
import type { LanguageNet } from "./lstm-model.js";
import type { Tokenizer } from "./tokenizers/tokenizer.js";
import { type Batch, evaluationWindows } from "./windows.js";

/** Options of an evaluation. The model is in evaluation mode. */
export interface TextEvaluation {
  readonly runtime: Runtime;
  readonly precision: TrainingPrecision;
  readonly model: LanguageNet;
  readonly tokenizer: Tokenizer;
  readonly text: string;
  /** Sequences in a batch. */
  readonly batchSize: number;
  /** Tokens from one sequence to the next. Default: half of the model's context. */
  readonly stride?: number | undefined;
}

export interface TextScore {
  /** Cross-entropy in bits over characters, independent of tokens: comparable between tokenizers and with n-grams. */
  readonly bitsPerCharacter: number;
  /** Cross-entropy in nats over tokens. */
  readonly loss: number;
  /** Share of tokens that got the largest logit. */
  readonly accuracy: number;
  readonly tokens: number;
  /** Of the tokens that were predicted: all but the first. */
  readonly characters: number;
}

/** Scores the predictions of a model for a text. */
export async function scoreText(evaluation: TextEvaluation): Promise<TextScore> {
  const { runtime, precision, model, tokenizer, text, batchSize } = evaluation;
  const context = model.config.blockSize;
  const stride = evaluation.stride ?? Math.ceil(context / 2);
  const tokens = tokenizer.encode(text);
  const { loss, accuracy, samples } = await evaluate<Batch>({
    runtime,
    precision,
    logits: (batch) => logitsOf(runtime, model, batch),
    labels: ({ targets }) => targets,
    batches: evaluationWindows(tokens, { context, stride, batchSize }),
  });
  const characters = charactersIn(text) - charactersIn(tokenizer.decode(tokens.subarray(0, 1)));
  return {
    bitsPerCharacter: (loss * samples) / Math.LN2 / characters,
    loss,
    accuracy,
    tokens: samples,
    characters,
  };
}

/** Logits [rows · scored, words] of the last tokens of each sequence. */
export function logitsOf(
  runtime: Runtime,
  model: LanguageNet,
  { inputs, rows, length, scored }: Batch,
): Tensor {
  const logits = model.forward(runtime.tensor(inputs, [rows, length]));
  const last = scored === length ? logits : logits.narrow(1, length - scored, scored);
  return last.reshape([-1, model.config.vocabSize]);
}

/** Code points. */
function charactersIn(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}
