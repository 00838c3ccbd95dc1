import { philox4x32 } from "@halfstep/formats/philox";
import { BertForMaskedLM } from "@halfstep/models";
import { argmax, crossEntropy, noGrad, type Runtime, type Tensor } from "@halfstep/tensor";
import { inPrecision, type TrainingPrecision } from "@halfstep/trainer";
import { bertInputs, sortedByLength, until } from "./batches.js";
import type { Learner, Score } from "./learner.js";
import type { ModelShape } from "./model-shape.js";
import type { Encoded } from "./tokenizer.js";

/** A text of which some tokens are hidden. */
export interface MaskedText extends Encoded {
  /** Places of the tokens that are to be told. */
  readonly places: readonly number[];
  /** What stood there. */
  readonly hidden: readonly number[];
}

export interface MaskingOptions {
  /** The same seed hides the same tokens; a text is hidden anew in each epoch. */
  readonly seed: number;
  readonly epoch: number;
  readonly mask: number;
  readonly vocabSize: number;
}

/** Share of the tokens that are to be told. */
const share = 0.15;

/**
 * Hides tokens as BERT does (Devlin et al. 2018): 15 % of a text, at least one, are to be told. Of these 8 in 10 become `[MASK]`,
 * one in 10 another token, one in 10 stays.
 */
export function masked(
  { ids }: Encoded,
  index: number,
  { seed, epoch, mask, vocabSize }: MaskingOptions,
): MaskedText {
  const inner = ids.length - 2;
  const draws = ids.map((_, i) =>
    // As shares of 2^32: by the first a token is chosen, by the second it is changed, by the third it gets another.
    philox4x32([i, index, epoch, 1], [seed >>> 0, Math.floor(seed / 2 ** 32)]).map(
      (word) => word / 2 ** 32,
    ),
  );
  const order = ids
    .map((_, i) => i)
    .slice(1, -1)
    .sort((a, b) => (draws[a]?.[0] as number) - (draws[b]?.[0] as number));
  const places = order.slice(0, Math.max(1, Math.round(share * inner))).sort((a, b) => a - b);
  const changed = [...ids];
  for (const place of places) {
    const [, kind, other] = draws[place] as number[];
    if ((kind as number) < 0.8) changed[place] = mask;
    else if ((kind as number) < 0.9) changed[place] = Math.floor((other as number) * vocabSize);
  }
  return { ids: changed, places, hidden: places.map((place) => ids[place] as number) };
}

export interface MaskedLearnerOptions {
  readonly shape: ModelShape;
  readonly seed: number;
  readonly precision: TrainingPrecision;
}

/** BERT that tells which tokens stood at hidden places: what it learns of a language by itself. */
export class MaskedLearner implements Learner<MaskedText> {
  readonly model: BertForMaskedLM;
  readonly #runtime: Runtime;
  readonly #options: MaskedLearnerOptions;

  constructor(runtime: Runtime, options: MaskedLearnerOptions) {
    this.#runtime = runtime;
    this.#options = options;
    this.model = new BertForMaskedLM(runtime, { ...options.shape, seed: options.seed });
  }

  loss(batch: readonly MaskedText[], perturbation?: Tensor): Tensor {
    return crossEntropy(this.logits(batch, perturbation), this.#hidden(batch));
  }

  async evaluate(examples: readonly MaskedText[], signal?: AbortSignal): Promise<Score> {
    let correct = 0;
    let loss = 0;
    let places = 0;
    for (const batch of until(signal, sortedByLength(examples, 32))) {
      const { tokens, sum } = await this.#runtime.step(() =>
        noGrad(() => {
          const logits = inPrecision(this.#options.precision, () => this.logits(batch));
          const sum = crossEntropy(logits, this.#hidden(batch), { reduction: "sum" });
          return { tokens: argmax([logits], null), sum };
        }),
      );
      const told = await tokens.toArray();
      const hidden = batch.flatMap((text) => text.hidden);
      correct += hidden.filter((token, i) => told[i] === token).length;
      places += hidden.length;
      loss += await sum.item();
      tokens.dispose();
      sum.dispose();
    }
    return { accuracy: correct / places, loss: loss / places };
  }

  #hidden(batch: readonly MaskedText[]): Tensor {
    return this.#runtime.tensor(Uint32Array.from(batch.flatMap(({ hidden }) => hidden)));
  }

  /** [places, vocabSize]: the places of all texts, one behind the other. */
  logits(batch: readonly MaskedText[], perturbation?: Tensor): Tensor {
    const { inputIds, attentionMask } = bertInputs(this.#runtime, batch, this.model.bert.config);
    const length = inputIds.shape[1] as number;
    const places = batch.flatMap((text, i) => text.places.map((place) => i * length + place));
    return this.model.forward(inputIds, {
      attentionMask,
      positions: this.#runtime.tensor(Uint32Array.from(places)),
      ...(perturbation && { perturbation }),
    });
  }
}
