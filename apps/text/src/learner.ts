import type { BertModel } from "@halfstep/models";
import type { Module } from "@halfstep/nn";
import type { Runtime, Tensor } from "@halfstep/tensor";
import type { TrainingPrecision } from "@halfstep/trainer";
import type { Encoded } from "./tokenizer.js";

/**
 * A model of one task, with the functions for training and use. A text may have one label or many: its class, the tags of its
 * words, the tokens at its hidden places.
 */
export interface Learner<Example extends Input, Input extends Encoded = Example> {
  readonly model: Module & { readonly bert: BertModel };
  readonly runtime: Runtime;
  /** The precision of tests. */
  readonly precision: TrainingPrecision;
  /** Records the forward pass of a batch. */
  scores(batch: readonly Input[], pass?: TrainingPass): Scores;
  /** The mean loss of a batch's labels. */
  lossOf(scores: Scores, batch: readonly Example[]): Tensor;
  /** The number of labels over which the loss of a batch is the mean. */
  weightOf(batch: readonly Example[]): number;
  /** uint32, of the shape of the scores without their last dimension: the best labels. Labels of padding are meaningless. */
  decide(scores: Scores): Tensor;
  /**
   * The scores with every other answer better by a margin, for labels that do not exclude each other. Default: those of labels of which
   * one is the best.
   */
  challenge?(scores: Scores, best: Tensor, margin: number): Scores;
  /** The labels of each text of a batch among those that were decided. */
  labelsOf(decided: Uint32Array, batch: readonly Input[]): readonly (readonly number[])[];
  /** The labels of an example. */
  wanted(example: Example): readonly number[];
}

/** How a batch is recorded in training. */
export interface TrainingPass {
  /** Of the word embeddings, [vocabSize, hiddenSize]. Default: none. */
  readonly perturbation?: Tensor | undefined;
  /** The least length to which texts are padded: that of the longest in a batch that processes share. Default: of the batch itself. */
  readonly length?: number | undefined;
}

/** The scores of a model for each label. */
export interface Scores {
  /** [..., labels] */
  readonly values: Tensor;
  /** uint32 [...]: 1 for places with a label, 0 for padding. Default: no padding. */
  readonly mask?: Tensor | undefined;
}

/** Records the forward pass of a batch, and its loss. */
export const lossOf = <Example extends Encoded>(
  learner: Learner<Example>,
  batch: readonly Example[],
  pass?: TrainingPass,
): Tensor => learner.lossOf(learner.scores(batch, pass), batch);
