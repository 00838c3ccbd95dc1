import { argmax, noGrad, type Runtime, type Tensor } from "@halfstep/tensor";
import { inPrecision, type TrainingPrecision } from "@halfstep/trainer";
import { bertInputs, padded, sortedByLength, until } from "./batches.js";
import type { Learner, Score } from "./learner.js";
import { type ClassificationLoss, classificationLoss, ignoredLabel } from "./losses.js";
import type { ModelShape } from "./model-shape.js";
import type { EncodedWords } from "./tokenizer.js";
import { featuresPerWord, type WordFeatures } from "./word-features.js";
import { WordTagger } from "./word-tagger.js";

/** A sentence as a model takes it, and the tags of its words that were not cut off. */
export interface EncodedSentence extends EncodedWords {
  readonly tags: readonly number[];
  /** How many words were cut off: they count as wrong. */
  readonly cut: number;
}

export interface TaggerOptions extends ClassificationLoss {
  readonly shape: ModelShape;
  readonly seed: number;
  readonly tags: number;
  /** Whether the tags of a sentence are scored together. */
  readonly crf: boolean;
  /** What the model knows of words besides their tokens. Default: nothing. */
  readonly features?: WordFeatures | undefined;
  readonly precision: TrainingPrecision;
}

/** What a model says of the words of a batch. */
export interface Emissions {
  /** [sentences, words, tags] */
  readonly scores: Tensor;
  /** uint32 [sentences, words]: 1 for words, 0 for padding. */
  readonly mask: Tensor;
}

/** BERT that tells the tag of each word, by the word's first token. */
export class Tagger implements Learner<EncodedSentence> {
  readonly model: WordTagger;
  readonly #runtime: Runtime;
  readonly #options: TaggerOptions;

  constructor(runtime: Runtime, options: TaggerOptions) {
    const { shape, seed, tags, crf, features } = options;
    this.#runtime = runtime;
    this.#options = options;
    this.model = new WordTagger(runtime, {
      ...{ ...shape, seed, numLabels: tags, crf },
      features: features?.names.length ?? 0,
    });
  }

  loss(batch: readonly EncodedSentence[], perturbation?: Tensor): Tensor {
    return this.#lossOf(this.emissions(batch, perturbation), batch);
  }

  async evaluate(examples: readonly EncodedSentence[], signal?: AbortSignal): Promise<Score> {
    let correct = 0;
    let loss = 0;
    let words = 0;
    let cut = 0;
    for (const batch of until(signal, sortedByLength(examples, 64))) {
      const results = await this.#runtime.step(() =>
        noGrad(() => {
          const emissions = inPrecision(this.#options.precision, () => this.emissions(batch));
          return { tags: this.tagsOf(emissions), mean: this.#lossOf(emissions, batch) };
        }),
      );
      const width = results.tags.shape[1] as number;
      const tags = await results.tags.toArray();
      const given = batch.flatMap((sentence, i) =>
        sentence.tags.map((tag, word) => tags[i * width + word] === tag),
      );
      correct += given.filter((isRight) => isRight).length;
      words += given.length;
      cut += batch.reduce((sum, sentence) => sum + sentence.cut, 0);
      loss += given.length * (await results.mean.item());
      results.tags.dispose();
      results.mean.dispose();
    }
    return { accuracy: correct / (words + cut), loss: loss / words };
  }

  /** uint32 [sentences, words]: the best tags; in places of padding they mean nothing. */
  tagsOf({ scores, mask }: Emissions): Tensor {
    const { crf } = this.model;
    return crf ? crf.decode(scores, { mask }).tags : argmax([scores], null);
  }

  /** What the model says of the words of sentences. */
  emissions(batch: readonly EncodedWords[], perturbation?: Tensor): Emissions {
    const runtime = this.#runtime;
    const { inputIds, attentionMask } = bertInputs(runtime, batch, this.model.bert.config);
    const scores = this.model.forward(inputIds, {
      attentionMask,
      wordFeatures: this.#featuresOf(batch, inputIds.shape),
      ...(perturbation && { perturbation }),
    });
    const [count, length, tags] = scores.shape as [number, number, number];
    const starts = batch.map((sentence, i) => sentence.starts.map((start) => i * length + start));
    const { values, mask, shape } = padded(starts, 0, length);
    return {
      scores: scores
        .reshape([count * length, tags])
        .indexSelect(0, runtime.tensor(values))
        .reshape([...shape, tags]),
      mask: runtime.tensor(mask, shape),
    };
  }

  /** uint32 [sentences, tokens, features of a word]: at the first token of each word. */
  #featuresOf(batch: readonly EncodedWords[], tokens: readonly number[]): Tensor | undefined {
    if (!this.#options.features) return undefined;
    const shape = [...tokens, featuresPerWord];
    const values = new Uint32Array(shape.reduce((size, each) => size * each, 1));
    for (const [i, { starts, features = [] }] of batch.entries())
      for (const [word, start] of starts.entries())
        values.set(features[word] ?? [], (i * (tokens[1] as number) + start) * featuresPerWord);
    return this.#runtime.tensor(values, shape);
  }

  /** Nats for each word: of a sentence's tags together where they are scored together. */
  #lossOf({ scores, mask }: Emissions, batch: readonly EncodedSentence[]): Tensor {
    const [, width, tags] = scores.shape as [number, number, number];
    const given = padded(
      batch.map((sentence) => sentence.tags),
      this.model.crf ? 0 : ignoredLabel,
      width,
    );
    const { crf } = this.model;
    const wanted = this.#runtime.tensor(given.values, given.shape);
    const words = batch.reduce((sum, sentence) => sum + sentence.tags.length, 0);
    if (!crf) {
      const rows = [scores.reshape([-1, tags]), wanted.reshape([-1])] as const;
      return classificationLoss(...rows, words, this.#options);
    }
    return crf.forward(scores, wanted, { mask, reduction: "sum" }).div(words);
  }
}
