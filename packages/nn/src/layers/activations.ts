import type { Tensor } from "@halfstep/tensor";
import { Module } from "../module.js";

/** max(x, 0) */
export class ReLU extends Module {
  forward(x: Tensor): Tensor {
    return x.relu();
  }
}

export class Tanh extends Module {
  forward(x: Tensor): Tensor {
    return x.tanh();
  }
}

export class Sigmoid extends Module {
  forward(x: Tensor): Tensor {
    return x.sigmoid();
  }
}
