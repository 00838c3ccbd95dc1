import {
  adaptiveAvgPool2d,
  pixelShuffle,
  pixelUnshuffle,
  type Tensor,
} from "@halfstep/tensor/functional";
import { requireArguments } from "../arguments.js";
import { Module } from "../module.js";
import type { Pair } from "./pair.js";

/** Means of windows that divide images [batch, height, width, channels] into `outputSize` parts, as torch.nn.AdaptiveAvgPool2d. */
export class AdaptiveAvgPool2d extends Module {
  readonly outputSize: Pair;

  constructor(outputSize: Pair);
  constructor(outputSize: Pair, ...surplus: readonly unknown[]) {
    super();
    requireArguments("new AdaptiveAvgPool2d(outputSize)", outputSize, ...surplus);
    this.outputSize = outputSize;
  }

  forward(x: Tensor): Tensor {
    return adaptiveAvgPool2d(x, this.outputSize);
  }
}

/** [batch, height, width, channels · r²] as [batch, height · r, width · r, channels], as torch.nn.PixelShuffle. */
export class PixelShuffle extends Module {
  readonly factor: number;

  constructor(factor: number);
  constructor(factor: number, ...surplus: readonly unknown[]) {
    super();
    requireArguments("new PixelShuffle(factor)", factor, ...surplus);
    this.factor = factor;
  }

  forward(x: Tensor): Tensor {
    return pixelShuffle(x, this.factor);
  }
}

/** The inverse of {@link PixelShuffle}. */
export class PixelUnshuffle extends Module {
  readonly factor: number;

  constructor(factor: number);
  constructor(factor: number, ...surplus: readonly unknown[]) {
    super();
    requireArguments("new PixelUnshuffle(factor)", factor, ...surplus);
    this.factor = factor;
  }

  forward(x: Tensor): Tensor {
    return pixelUnshuffle(x, this.factor);
  }
}
