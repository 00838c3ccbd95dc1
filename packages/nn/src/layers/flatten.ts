import type { Tensor } from "@halfstep/tensor/functional";
import { Module } from "../module.js";

/** [batch, ...] as [batch, features]. */
export class Flatten extends Module {
  forward(x: Tensor): Tensor {
    const [batch = 1, ...rest] = x.shape;
    // A size of -1 would not be known for an empty batch.
    return x.reshape([batch, rest.reduce((a, b) => a * b, 1)]);
  }
}
