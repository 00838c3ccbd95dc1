import { argmax, type Runtime, type Tensor } from "@halfstep/tensor";
import type { TrainingPrecision } from "@halfstep/trainer";
import { BagClassifier } from "./bag-classifier.js";
import { bertInputs } from "./batches.js";
import type { Learner, Scores } from "./learner.js";
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
  /**
   * The score of each token for each class, [vocabSize, classes]: the initial weights of a bag of words that is trained
   * with the model.
   */
  readonly tokenScores?: Float32Array | undefined;
  readonly precision: TrainingPrecision;
}

/** BERT that predicts the class of a text. */
export class Classifier implements Learner<EncodedText, Encoded> {
  readonly model: BagClassifier;
  readonly runtime: Runtime;
  readonly precision: TrainingPrecision;
  readonly #options: ClassifierOptions;

  constructor(runtime: Runtime, options: ClassifierOptions) {
    const { shape, seed, classes, tokenScores, precision } = options;
    this.runtime = runtime;
    this.precision = precision;
    this.#options = options;
    this.model = new BagClassifier(runtime, { ...shape, seed, numLabels: classes, tokenScores });
  }

  /** [texts, classes] */
  scores(batch: readonly Encoded[], perturbation?: Tensor): Scores {
    const { inputIds, attentionMask } = bertInputs(this.runtime, batch, this.model.bert.config);
    const inputs = { attentionMask, ...(perturbation && { perturbation }) };
    return { values: this.model.forward(inputIds, inputs) };
  }

  lossOf({ values }: Scores, batch: readonly EncodedText[]): Tensor {
    const labels = this.runtime.tensor(Uint32Array.from(batch, ({ label }) => label));
    return classificationLoss(values, labels, batch.length, this.#options);
  }

  decide({ values }: Scores): Tensor {
    return argmax(values, -1);
  }

  labelsOf(decided: Uint32Array): readonly (readonly number[])[] {
    return Array.from(decided, (label) => [label]);
  }

  wanted({ label }: EncodedText): readonly number[] {
    return [label];
  }
}
