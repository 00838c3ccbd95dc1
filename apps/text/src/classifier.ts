import { argmax, type Runtime, type Tensor } from "@halfstep/tensor";
import { classificationLoss, type TrainingPrecision } from "@halfstep/trainer";
import { BagClassifier } from "./bag-classifier.js";
import { bertInputs } from "./batches.js";
import type { Learner, Scores, TrainingPass } from "./learner.js";
import { type LearnerLoss, lossOptions } from "./learner-loss.js";
import type { ModelShape } from "./model-shape.js";
import type { Encoded } from "./tokenizer.js";

/** A text as a model takes it, and its class. */
export interface EncodedText extends Encoded {
  readonly label: number;
}

export interface ClassifierOptions extends LearnerLoss {
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

/** BERT that scores the classes or labels of a text, or of a pair. */
export abstract class TextScorer<Example extends Encoded> implements Learner<Example, Encoded> {
  readonly model: BagClassifier;
  readonly runtime: Runtime;
  readonly precision: TrainingPrecision;
  protected readonly options: ClassifierOptions;

  constructor(runtime: Runtime, options: ClassifierOptions) {
    const { shape, seed, classes, tokenScores, precision } = options;
    this.runtime = runtime;
    this.precision = precision;
    this.options = options;
    this.model = new BagClassifier(runtime, { ...shape, seed, numLabels: classes, tokenScores });
  }

  /** [texts, classes] */
  scores(batch: readonly Encoded[], { perturbation, length }: TrainingPass = {}): Scores {
    const { inputIds, ...inputs } = bertInputs(this.runtime, batch, this.model.bert.config, length);
    return {
      values: this.model.forward(inputIds, { ...inputs, ...(perturbation && { perturbation }) }),
    };
  }

  weightOf(batch: readonly Example[]): number {
    return batch.length;
  }

  abstract lossOf(scores: Scores, batch: readonly Example[]): Tensor;
  abstract decide(scores: Scores): Tensor;
  abstract labelsOf(
    decided: Uint32Array,
    batch: readonly Encoded[],
  ): readonly (readonly number[])[];
  abstract wanted(example: Example): readonly number[];
}

/** BERT that predicts the class of a text, or of a pair. */
export class Classifier extends TextScorer<EncodedText> {
  override lossOf({ values }: Scores, batch: readonly EncodedText[]): Tensor {
    const labels = this.runtime.tensor(Uint32Array.from(batch, ({ label }) => label));
    return classificationLoss(values, labels, batch.length, lossOptions(this, this.options));
  }

  override decide({ values }: Scores): Tensor {
    return argmax(values, -1);
  }

  override labelsOf(decided: Uint32Array): readonly (readonly number[])[] {
    return Array.from(decided, (label) => [label]);
  }

  override wanted({ label }: EncodedText): readonly number[] {
    return [label];
  }
}
