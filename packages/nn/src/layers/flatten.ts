import type { Tensor } from "@halfstep/tensor/functional";
import { Module } from "../module.js";

/** [batch, ...] as [batch, features]. */
export class Flatten extends Module {
  forward(x: Tensor): Tensor {
    return x.reshape([x.shape[0] ?? 1, -1]);
  }
}
