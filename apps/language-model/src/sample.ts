import { Generator } from "@halfstep/nn";
import { indexSelect, noGrad, type Runtime, type Tensor } from "@halfstep/tensor";
import { inPrecision } from "@halfstep/trainer";
import { type LanguageNet, LstmModel } from "./lstm-model.js";
import type { LanguageModel } from "./saved-model.js";

export interface SampleOptions {
  /** The beginning of the text, at least one token. */
  readonly prompt: string;
  /** Tokens to add. */
  readonly length: number;
  /** Divides the logits: below 1 likely tokens become likelier. 0 always takes the likeliest. */
  readonly temperature: number;
  /** Draw from so many of the likeliest tokens alone. Default: from all. */
  readonly topK?: number | undefined;
  /** Draw from the fewest tokens whose probabilities add up to this (Holtzman et al. 2019). Default 1: from all. */
  readonly topP?: number | undefined;
  readonly seed: number;
  /** Called with each token. */
  readonly onToken?: (token: number) => void;
}

/**
 * Continues a text. The same seed draws the same numbers, and on the same adapter the text is the same.
 * @returns all tokens, those of the prompt included
 */
export async function sampleText(
  runtime: Runtime,
  { model, tokenizer, precision }: Pick<LanguageModel, "model" | "tokenizer" | "precision">,
  options: SampleOptions,
): Promise<readonly number[]> {
  const { prompt, length, seed, onToken } = options;
  const generator = new Generator(seed);
  const tokens = [...tokenizer.encode(prompt)];
  for (let i = 0; i < length; i++) {
    using logits = await runtime.step(() =>
      noGrad(() => inPrecision(precision, () => lastLogits(runtime, model, tokens))),
    );
    const token = draw(await logits.toArray(), options, () => generator.uniform());
    tokens.push(token);
    onToken?.(token);
  }
  return tokens;
}

/**
 * Logits of the token after the last one. The model always gets a whole context, so that one plan suffices; neither causal attention
 * nor a recurrent layer sees the tokens after the last one.
 */
function lastLogits(runtime: Runtime, model: LanguageNet, tokens: readonly number[]): Tensor {
  const { blockSize } = model.config;
  const seen = tokens.slice(-blockSize);
  const input = new Uint32Array(blockSize);
  input.set(seen);
  const given = runtime.tensor(input, [1, blockSize]);
  const isRecurrent = model instanceof LstmModel;
  const features = isRecurrent ? model.features(given) : model.transformer.forward(given);
  const last = indexSelect(features, 1, runtime.tensor(Uint32Array.of(seen.length - 1)));
  return (isRecurrent ? model.head : model.lmHead).forward(last);
}

/** Draws a token; `uniform` is asked for one number from [0, 1). */
export function draw(
  logits: ArrayLike<number>,
  { temperature, topK, topP = 1 }: Pick<SampleOptions, "temperature" | "topK" | "topP">,
  uniform: () => number,
): number {
  const order = Array.from(logits, (_, token) => token).sort(
    (a, b) => (logits[b] as number) - (logits[a] as number) || a - b,
  );
  const best = order[0] as number;
  const number = uniform();
  if (temperature === 0) return best;
  const candidates = order.slice(0, topK ?? order.length);
  const weights = candidates.map((token) =>
    Math.exp(((logits[token] as number) - (logits[best] as number)) / temperature),
  );
  const total = weights.reduce((a, b) => a + b, 0);
  let kept = 0;
  let count = 0;
  while (count < weights.length && kept < topP * total) kept += weights[count++] as number;
  let rest = number * kept;
  for (let i = 0; i < count; i++) {
    rest -= weights[i] as number;
    if (rest < 0) return candidates[i] as number;
  }
  return candidates[count - 1] ?? best;
}
