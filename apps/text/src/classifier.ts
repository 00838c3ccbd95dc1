import { BertForSequenceClassification } from "@halfstep/models";
import { argmax, crossEntropy, noGrad, type Runtime, type Tensor } from "@halfstep/tensor";
import { inPrecision, type TrainingPrecision } from "@halfstep/trainer";
import { bertInputs, sortedByLength } from "./batches.js";
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
  readonly precision: TrainingPrecision;
}

/** BERT that tells the class of a text. */
export class Classifier implements Learner<EncodedText> {
  readonly model: BertForSequenceClassification;
  readonly #runtime: Runtime;
  readonly #options: ClassifierOptions;

  constructor(runtime: Runtime, options: ClassifierOptions) {
    const { shape, seed, classes } = options;
    this.#runtime = runtime;
    this.#options = options;
    this.model = new BertForSequenceClassification(runtime, { ...shape, seed, numLabels: classes });
  }

  loss(batch: readonly EncodedText[], perturbation?: Tensor): Tensor {
    const labels = this.#runtime.tensor(Uint32Array.from(batch, ({ label }) => label));
    const logits = this.#logits(batch, perturbation);
    return classificationLoss(logits, labels, batch.length, this.#options);
  }

  async evaluate(examples: readonly EncodedText[], signal?: AbortSignal): Promise<Score> {
    let correct = 0;
    let loss = 0;
    for await (const { batch, classes, losses } of this.#results(examples, signal))
      for (const [i, { label }] of batch.entries()) {
        if (classes[i] === label) correct++;
        loss += losses[i] as number;
      }
    return { accuracy: correct / examples.length, loss: loss / examples.length };
  }

  /** The classes of texts, in their order. */
  async predict(texts: readonly Encoded[]): Promise<readonly number[]> {
    const found = new Map<Encoded, number>();
    const examples = texts.map((text, place) => ({ ...text, label: 0, place }));
    for await (const { batch, classes } of this.#results(examples))
      for (const [i, example] of batch.entries()) found.set(example, classes[i] as number);
    return examples.map((example) => found.get(example) as number);
  }

  async *#results<Example extends EncodedText>(
    examples: readonly Example[],
    signal?: AbortSignal,
  ): AsyncGenerator<{
    batch: readonly Example[];
    classes: ArrayLike<number>;
    losses: ArrayLike<number>;
  }> {
    for (const batch of sortedByLength(examples, 64)) {
      if (signal?.aborted) return;
      const labels = this.#runtime.tensor(Uint32Array.from(batch, ({ label }) => label));
      const { classes, losses } = await this.#runtime.step(() =>
        noGrad(() => {
          const logits = inPrecision(this.#options.precision, () => this.#logits(batch));
          return {
            classes: argmax([logits], null),
            losses: crossEntropy(logits, labels, { reduction: "none" }),
          };
        }),
      );
      yield { batch, classes: await classes.toArray(), losses: await losses.toArray() };
      classes.dispose();
      losses.dispose();
    }
  }

  #logits(batch: readonly Encoded[], perturbation?: Tensor): Tensor {
    const { inputIds, attentionMask } = bertInputs(this.#runtime, batch, this.model.bert.config);
    return this.model.forward(inputIds, { attentionMask, ...(perturbation && { perturbation }) });
  }
}
