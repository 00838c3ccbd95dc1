import type { Module } from "@halfstep/nn";
import type { Runtime, Tensor } from "@halfstep/tensor";
import type { TrainConfig } from "../config.js";

/** A model and its data on one runtime. */
export interface Task {
  readonly model: Module;
  /** Records the forward pass of a step and its loss. The same step has the same data on every runtime. */
  loss(step: number): Tensor;
  /** What can be looked at between steps. */
  readonly view: TaskView;
}

/** What a task shows. Functions record no gradients. */
type TaskView =
  | {
      readonly kind: "surface";
      /** Two logits for each point of a grid, row by row from the top. The caller disposes the tensor. */
      surface(): Promise<Tensor>;
    }
  | {
      readonly kind: "images";
      /** Share of right answers on images that training does not see. */
      accuracy(): Promise<number>;
      /** The probability of each class, for one image. */
      classify(pixels: Float32Array): Promise<Float32Array>;
    }
  | {
      readonly kind: "text";
      /** Some more characters, in continuation of those before. */
      write(count: number): Promise<string>;
    };

/** What a task is made of. */
export interface TaskParts {
  readonly runtime: Runtime;
  readonly config: TrainConfig;
  /** Runs a forward pass in the precision of the setup. */
  readonly inPrecision: <T>(fn: () => T) => T;
}
