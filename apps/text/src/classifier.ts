import type { Runtime, Tensor } from "@halfstep/tensor";
import { evaluate, type TrainingPrecision } from "@halfstep/trainer";
import { BagClassifier } from "./bag-classifier.js";
import { bertInputs, sortedByLength, until } from "./batches.js";
import type { Learner, Score } from "./learner.js";
import { type ClassificationLoss, classificationLoss } from "./losses.js";
import type { ModelShape } from "./model-shape.js";
import type { Encoded } from "./tokenizer.js";

/** A text as a model takes it, and its class. */
export interface EncodedText extends Encoded {
  readonly label: number;
}

export interface ClassifierOptions extends ClassificationLoss {
  readonly shape: ModelShape;
  readonly seed: number;
  readonly classes: number;
  /** What each token says for each class, [vocabSize, classes]: where a bag of words begins that learns with the model. */
  readonly tokenScores?: Float32Array | undefined;
  readonly precision: TrainingPrecision;
}

/** BERT that tells the class of a text. */
export class Classifier implements Learner<EncodedText> {
  readonly model: BagClassifier;
  readonly #runtime: Runtime;
  readonly #options: ClassifierOptions;

  constructor(runtime: Runtime, options: ClassifierOptions) {
    const { shape, seed, classes, tokenScores } = options;
    this.#runtime = runtime;
    this.#options = options;
    this.model = new BagClassifier(runtime, { ...shape, seed, numLabels: classes, tokenScores });
  }

  loss(batch: readonly EncodedText[], perturbation?: Tensor): Tensor {
    const labels = this.#runtime.tensor(Uint32Array.from(batch, ({ label }) => label));
    const logits = this.logits(batch, perturbation);
    return classificationLoss(logits, labels, batch.length, this.#options);
  }

  async evaluate(examples: readonly EncodedText[], signal?: AbortSignal): Promise<Score> {
    const { accuracy, loss } = await evaluate<readonly EncodedText[]>({
      runtime: this.#runtime,
      precision: this.#options.precision,
      logits: (batch) => this.logits(batch),
      labels: (batch) => Uint32Array.from(batch, ({ label }) => label),
      batches: until(signal, sortedByLength(examples, 64)),
    });
    return { accuracy, loss };
  }

  /** [texts, classes] */
  logits(batch: readonly Encoded[], perturbation?: Tensor): Tensor {
    const { inputIds, attentionMask } = bertInputs(this.#runtime, batch, this.model.bert.config);
    return this.model.forward(inputIds, { attentionMask, ...(perturbation && { perturbation }) });
  }
}
