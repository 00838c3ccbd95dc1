import { philox4x32 } from "@halfstep/formats/philox";
import { BertForMaskedLM } from "@halfstep/models";
import { argmax, crossEntropy, type Runtime, type Tensor } from "@halfstep/tensor";
import { ignoredLabel, type TrainingPrecision } from "@halfstep/trainer";
import { bertInputs } from "./batches.js";
import type { Learner, Scores, TrainingPass } from "./learner.js";
import type { ModelShape } from "./model-shape.js";
import type { Encoded } from "./tokenizer.js";

/** A text of which some tokens are hidden. */
export interface MaskedText extends Encoded {
  /** Places of the tokens to predict. */
  readonly places: readonly number[];
  /** The hidden tokens at these places. */
  readonly hidden: readonly number[];
}

export interface MaskingOptions {
  /** The same seed hides the same tokens; a text is hidden anew in each epoch. */
  readonly seed: number;
  readonly epoch: number;
  readonly mask: number;
  readonly vocabSize: number;
  /** Share of the tokens to predict. */
  readonly share: number;
}

/** BERT's share of hidden tokens, with which models are tested. */
export const bertShare = 0.15;

/** The share for training small models: more predictions in each text, with enough visible tokens (Wettig et al. 2023). */
export const learningShare = 0.4;

/**
 * Hides tokens as BERT does (Devlin et al. 2018): a share of a text, at least one token, is to be predicted. Of these, 8 in 10 become
 * `[MASK]`, one in 10 becomes another token, and one in 10 stays.
 */
export function masked(
  { ids }: Encoded,
  index: number,
  { seed, epoch, mask, vocabSize, share }: MaskingOptions,
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
  /**
   * log p of each token, [vocabSize]: the initial prediction of the model, so that it learns from the context from the first step on.
   * Default: all tokens are equally likely.
   */
  readonly unigrams?: Float64Array | undefined;
}

/** BERT that predicts the tokens at hidden places. */
export class MaskedLearner implements Learner<MaskedText> {
  readonly model: BertForMaskedLM;
  readonly runtime: Runtime;
  readonly precision: TrainingPrecision;

  constructor(runtime: Runtime, options: MaskedLearnerOptions) {
    this.runtime = runtime;
    this.precision = options.precision;
    this.model = new BertForMaskedLM(runtime, { ...options.shape, seed: options.seed });
    if (options.unigrams) begin(this.model, options.unigrams);
  }

  /** [places, vocabSize]: the places of all texts in sequence, followed by padding. */
  scores(batch: readonly MaskedText[], { perturbation, length }: TrainingPass = {}): Scores {
    const { inputIds, attentionMask } = bertInputs(
      this.runtime,
      batch,
      this.model.bert.config,
      length,
    );
    const width = inputIds.shape[1] as number;
    const places = batch.flatMap((text, i) => text.places.map((place) => i * width + place));
    return {
      values: this.model.forward(inputIds, {
        attentionMask,
        positions: this.runtime.tensor(filledUp(places, 0)),
        ...(perturbation && { perturbation }),
      }),
    };
  }

  lossOf({ values }: Scores, batch: readonly MaskedText[]): Tensor {
    const hidden = filledUp(
      batch.flatMap((text) => text.hidden),
      ignoredLabel,
    );
    return crossEntropy(values, this.runtime.tensor(hidden), { ignoreIndex: ignoredLabel });
  }

  weightOf(batch: readonly MaskedText[]): number {
    return batch.reduce((sum, { hidden }) => sum + hidden.length, 0);
  }

  decide({ values }: Scores): Tensor {
    return argmax(values, -1);
  }

  labelsOf(decided: Uint32Array, batch: readonly MaskedText[]): readonly (readonly number[])[] {
    const tokens = [...decided];
    return batch.map(({ places }) => tokens.splice(0, places.length));
  }

  wanted({ hidden }: MaskedText): readonly number[] {
    return hidden;
  }
}

/**
 * How many places there are is rounded up to a multiple of this: batches hardly ever have as many, and each number would be a plan of
 * its own, with bind groups of its own.
 */
const placesStep = 128;

const filledUp = (list: readonly number[], filling: number): Uint32Array => {
  const values = new Uint32Array(Math.ceil(list.length / placesStep) * placesStep).fill(filling);
  values.set(list);
  return values;
};

/** Sets initial parameters of a small model: from random ones, it takes long to learn more than the frequencies of tokens. */
function begin({ bert, cls }: BertForMaskedLM, unigrams: Float64Array): void {
  const { bias } = cls.predictions;
  bias.assign(bias.runtime.tensor(Float32Array.from(unigrams), bias.shape));
  const { weight } = bert.embeddings.positionEmbeddings;
  const { maxPositionEmbeddings, hiddenSize, initializerRange } = bert.config;
  const waves = sinusoids(maxPositionEmbeddings, hiddenSize);
  // As large on average as random ones.
  const amplitude = Math.SQRT2 * initializerRange;
  weight.assign(
    weight.runtime.tensor(
      waves.map((wave) => amplitude * wave),
      weight.shape,
    ),
  );
}

/**
 * Embeddings of positions as Vaswani et al. (2017) have them, [length, size]: the embedding a few tokens further is a linear function
 * of the present one, so that attention learns to find neighbours quickly.
 */
function sinusoids(length: number, size: number): Float32Array {
  return new Float32Array(length * size).map((_, i) => {
    const [position, feature] = [Math.floor(i / size), i % size];
    const angle = position / 10_000 ** ((feature - (feature % 2)) / size);
    return feature % 2 === 0 ? Math.sin(angle) : Math.cos(angle);
  });
}
