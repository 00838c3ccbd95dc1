import { argmax, type Runtime, type Tensor } from "@halfstep/tensor";
import { classificationLoss, ignoredLabel, type TrainingPrecision } from "@halfstep/trainer";
import { bertInputs, padded } from "./batches.js";
import type { Learner, Scores, TrainingPass } from "./learner.js";
import { type LearnerLoss, lossOptions } from "./learner-loss.js";
import type { ModelShape } from "./model-shape.js";
import type { EncodedWords } from "./tokenizer.js";
import { featuresPerWord, type WordFeatures } from "./word-features.js";
import { WordTagger } from "./word-tagger.js";

/** A sentence as a model takes it, or a window of it, and the tags of its words. */
export interface EncodedSentence extends EncodedWords {
  readonly tags: readonly number[];
}

export interface TaggerOptions extends LearnerLoss {
  readonly shape: ModelShape;
  readonly seed: number;
  readonly tags: number;
  /** Whether the tags of a sentence are scored together. */
  readonly crf: boolean;
  /** The features of words that the model sees besides tokens. Default: none. */
  readonly features?: WordFeatures | undefined;
  readonly precision: TrainingPrecision;
}

/** BERT that tells the tag of each word, by the word's first token. */
export class Tagger implements Learner<EncodedSentence, EncodedWords> {
  readonly model: WordTagger;
  readonly runtime: Runtime;
  readonly precision: TrainingPrecision;
  readonly #options: TaggerOptions;

  constructor(runtime: Runtime, options: TaggerOptions) {
    const { shape, seed, tags, crf, features, precision } = options;
    this.runtime = runtime;
    this.precision = precision;
    this.#options = options;
    this.model = new WordTagger(runtime, {
      ...{ ...shape, seed, numLabels: tags, crf },
      features: features?.names.length ?? 0,
    });
  }

  /** [sentences, words, tags] */
  scores(batch: readonly EncodedWords[], { perturbation, length }: TrainingPass = {}): Scores {
    const { runtime } = this;
    const { inputIds, ...inputs } = bertInputs(runtime, batch, this.model.bert.config, length);
    const scores = this.model.forward(inputIds, {
      ...inputs,
      wordFeatures: this.#featuresOf(batch, inputIds.shape),
      ...(perturbation && { perturbation }),
    });
    const [count, width, tags] = scores.shape as [number, number, number];
    const starts = batch.map((sentence, i) => sentence.starts.map((start) => i * width + start));
    const { values, mask, shape } = padded(starts, 0, width);
    return {
      values: scores
        .reshape([count * width, tags])
        .indexSelect(0, runtime.tensor(values))
        .reshape([...shape, tags]),
      mask: runtime.tensor(mask, shape),
    };
  }

  /** For each word: of a sentence's tags together where they are scored together. */
  lossOf({ values, mask }: Scores, batch: readonly EncodedSentence[]): Tensor {
    const [, width, tags] = values.shape as [number, number, number];
    const given = padded(
      batch.map((sentence) => sentence.tags),
      this.model.crf ? 0 : ignoredLabel,
      width,
    );
    const { crf } = this.model;
    const wanted = this.runtime.tensor(given.values, given.shape);
    const words = this.weightOf(batch);
    if (!crf) {
      const rows = [values.reshape([-1, tags]), wanted.reshape([-1])] as const;
      return classificationLoss(...rows, words, lossOptions(this, this.#options));
    }
    return crf.forward(values, wanted, { ...(mask && { mask }), reduction: "sum" }).div(words);
  }

  weightOf(batch: readonly EncodedSentence[]): number {
    return batch.reduce((sum, { tags }) => sum + tags.length, 0);
  }

  decide({ values, mask }: Scores): Tensor {
    const { crf } = this.model;
    return crf ? crf.decode(values, mask && { mask }).tags : argmax(values, -1);
  }

  labelsOf(decided: Uint32Array, batch: readonly EncodedWords[]): readonly (readonly number[])[] {
    const width = decided.length / batch.length;
    return batch.map(({ starts }, i) => [...decided.slice(i * width, i * width + starts.length)]);
  }

  wanted({ tags }: EncodedSentence): readonly number[] {
    return tags;
  }

  /** uint32 [sentences, tokens, features of a word]: at the first token of each word. */
  #featuresOf(batch: readonly EncodedWords[], tokens: readonly number[]): Tensor | undefined {
    if (!this.#options.features) return undefined;
    const shape = [...tokens, featuresPerWord];
    const values = new Uint32Array(shape.reduce((size, each) => size * each, 1));
    for (const [i, { starts, features = [] }] of batch.entries())
      for (const [word, start] of starts.entries())
        values.set(features[word] ?? [], (i * (tokens[1] as number) + start) * featuresPerWord);
    return this.runtime.tensor(values, shape);
  }
}
