import {
  avgPool2d,
  maxPool2d,
  type PoolOptions,
  ShapeError,
  type Tensor,
} from "@halfstep/tensor/functional";
import { requireArguments } from "../arguments.js";
import { Module } from "../module.js";
import type { Pair } from "./pair.js";

/** Windows of pooling layers; a pair is height and width. */
export interface Pool2dOptions {
  readonly kernelSize: Pair;
  /** Default: the kernel size. */
  readonly stride?: Pair;
  /** Default 0. */
  readonly padding?: Pair;
}

abstract class Pool2d extends Module {
  readonly kernelSize: Pair;
  readonly stride: Pair;
  readonly padding: Pair;

  constructor(options: Pool2dOptions) {
    super();
    requireArguments(`new ${this.constructor.name}({ kernelSize, stride?, padding? })`, options);
    const { kernelSize, stride = kernelSize, padding = 0 } = options;
    this.kernelSize = kernelSize;
    this.stride = stride;
    this.padding = padding;
  }

  /** The op's options, if it can take the input. */
  protected optionsFor(x: Tensor): PoolOptions {
    if (x.rank !== 4)
      throw new ShapeError(
        `${this.label} needs an input [batch, height, width, channels], not [${x.shape}]`,
      );
    const { kernelSize: window, stride, padding } = this;
    return { window, stride, padding };
  }
}

/** Maximum of each window of images [batch, height, width, channels]. */
export class MaxPool2d extends Pool2d {
  forward(x: Tensor): Tensor {
    return maxPool2d(x, this.optionsFor(x));
  }
}

/** Mean of each window of images [batch, height, width, channels]; padding counts as zeros. */
export class AvgPool2d extends Pool2d {
  forward(x: Tensor): Tensor {
    return avgPool2d(x, this.optionsFor(x));
  }
}
