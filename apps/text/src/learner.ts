import type { BertModel } from "@halfstep/models";
import type { Module } from "@halfstep/nn";
import type { Runtime, Tensor } from "@halfstep/tensor";
import type { TrainingPrecision } from "@halfstep/trainer";
import type { Encoded } from "./tokenizer.js";

/**
 * A model of one task, with what training and using it takes. A text may have one label or many: its class, the tags of its words,
 * the tokens at its hidden places.
 */
export interface Learner<Example extends Input, Input extends Encoded = Example> {
  readonly model: Module & { readonly bert: BertModel };
  readonly runtime: Runtime;
  /** What it is tested in. */
  readonly precision: TrainingPrecision;
  /**
   * Records the forward pass of a batch.
   * @param perturbation of the word embeddings, [vocabSize, hiddenSize]
   */
  scores(batch: readonly Input[], perturbation?: Tensor): Scores;
  /** The mean loss of a batch's labels. */
  lossOf(scores: Scores, batch: readonly Example[]): Tensor;
  /** uint32, of the shape of the scores without their last dimension: the best labels. What padding gets means nothing. */
  decide(scores: Scores): Tensor;
  /** The labels of each text of a batch among those that were decided. */
  labelsOf(decided: Uint32Array, batch: readonly Input[]): readonly (readonly number[])[];
  /** The labels that an example has. What was cut off has -1, which no model gives. */
  wanted(example: Example): readonly number[];
}

/** How good a model finds each label. */
export interface Scores {
  /** [..., labels] */
  readonly values: Tensor;
  /** uint32 [...]: 1 for what has a label, 0 for padding. Default: there is no padding. */
  readonly mask?: Tensor | undefined;
}

/** Records the forward pass of a batch, and its loss. */
export const lossOf = <Example extends Encoded>(
  learner: Learner<Example>,
  batch: readonly Example[],
  perturbation?: Tensor,
): Tensor => learner.lossOf(learner.scores(batch, perturbation), batch);
