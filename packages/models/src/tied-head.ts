import { Module } from "@halfstep/nn";
import { linear, type Tensor, type Variable } from "@halfstep/tensor/functional";

/** A linear layer whose weight is that of an embedding: from features to a score for each word. */
export class TiedHead extends Module {
  /** [words, features] */
  readonly weight: Variable;
  /** [words] */
  readonly bias: Variable | undefined;

  constructor(weight: Variable, bias?: Variable) {
    super();
    this.weight = weight;
    this.bias = bias;
  }

  /** @param x [..., features] */
  forward(x: Tensor): Tensor {
    return linear(x, this.weight, this.bias);
  }
}
