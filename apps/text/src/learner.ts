import type { BertModel } from "@halfstep/models";
import type { Module } from "@halfstep/nn";
import type { Tensor } from "@halfstep/tensor";
import type { Encoded } from "./tokenizer.js";

/** A model of one task, with what training it takes. */
export interface Learner<Example extends Encoded> {
  readonly model: Module & { readonly bert: BertModel };
  /**
   * Records the forward pass of a batch, and its loss.
   * @param perturbation of the word embeddings, [vocabSize, hiddenSize]
   */
  loss(batch: readonly Example[], perturbation?: Tensor): Tensor;
  /** How well the model does. It is in evaluation mode. */
  evaluate(examples: readonly Example[], signal?: AbortSignal): Promise<Score>;
}

/** Accuracy from 0 to 1, and the mean loss in nats. */
export type Score = { readonly accuracy: number; readonly loss: number };
