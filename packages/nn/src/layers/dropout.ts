import {
  type DropoutOptions,
  dropout,
  type Generator,
  type Tensor,
} from "@halfstep/tensor/functional";
import { requireArguments } from "../arguments.js";
import { Module } from "../module.js";

/**
 * In training each element becomes 0 with probability p, and the others are divided by 1 − p; in evaluation mode nothing
 * changes. Masks come from the generator, which a step that the loss scaler skips moves on too.
 */
export class Dropout extends Module {
  readonly p: number;
  readonly generator: Generator;

  constructor(options: DropoutOptions);
  constructor(options: DropoutOptions, ...surplus: readonly unknown[]) {
    super();
    requireArguments("new Dropout({ generator, p? })", options, ...surplus);
    const { p = 0.5, generator } = options;
    this.p = p;
    this.generator = generator;
  }

  forward(x: Tensor): Tensor {
    return this.isTraining && this.p > 0 ? dropout(x, this) : x;
  }
}
