import {
  type AvgPoolOptions,
  avgPool2d,
  maxPool2d,
  type PoolOptions,
  ShapeError,
  type Tensor,
} from "@halfstep/tensor/functional";
import { requireArguments } from "../arguments.js";
import { Module } from "../module.js";
import { type Pair, requirePoolPadding, requireWindow } from "./pair.js";

/** Windows of {@link MaxPool2d}; a pair is height and width. */
export interface Pool2dOptions {
  readonly kernelSize: Pair;
  /** Default: the kernel size. */
  readonly stride?: Pair;
  /** Default 0. */
  readonly padding?: Pair;
  /** A last window may reach past the padding, as with torch's `ceil_mode`. Default false. */
  readonly ceilMode?: boolean;
}

/** Windows of {@link AvgPool2d}. */
export interface AvgPool2dOptions extends Pool2dOptions {
  /** Whether padding counts as zeros. Default true. */
  readonly countIncludePad?: boolean;
}

abstract class Pool2d extends Module {
  readonly kernelSize: Pair;
  readonly stride: Pair;
  readonly padding: Pair;
  readonly ceilMode: boolean;

  /**
   * @param call the call of the layer, for errors
   * @param surplus arguments that the layer does not take
   */
  constructor(call: string, options: Pool2dOptions, surplus: readonly unknown[]) {
    super();
    requireArguments(call, options, ...surplus);
    requireWindow(call, 2, options);
    requirePoolPadding(call, options);
    const { kernelSize, stride = kernelSize, padding = 0, ceilMode = false } = options;
    this.kernelSize = kernelSize;
    this.stride = stride;
    this.padding = padding;
    this.ceilMode = ceilMode;
  }

  /** The op's options, if it can take the input. */
  protected optionsFor(x: Tensor): PoolOptions {
    if (x.rank !== 4)
      throw new ShapeError(
        `${this.label} needs an input [batch, height, width, channels], not [${x.shape}]`,
      );
    const { kernelSize: window, stride, padding, ceilMode } = this;
    return { window, stride, padding, ...(ceilMode && { ceilMode }) };
  }
}

/** Maximum of each window of images [batch, height, width, channels]. */
export class MaxPool2d extends Pool2d {
  constructor(options: Pool2dOptions);
  constructor(options: Pool2dOptions, ...surplus: readonly unknown[]) {
    super("new MaxPool2d({ kernelSize, stride?, padding?, ceilMode? })", options, surplus);
  }

  forward(x: Tensor): Tensor {
    return maxPool2d(x, this.optionsFor(x));
  }
}

/** Mean of each window of images [batch, height, width, channels]; padding counts as zeros, unless told otherwise. */
export class AvgPool2d extends Pool2d {
  readonly countIncludePad: boolean;

  constructor(options: AvgPool2dOptions);
  constructor(options: AvgPool2dOptions, ...surplus: readonly unknown[]) {
    const call = "new AvgPool2d({ kernelSize, stride?, padding?, ceilMode?, countIncludePad? })";
    super(call, options, surplus);
    this.countIncludePad = options.countIncludePad ?? true;
  }

  protected override optionsFor(x: Tensor): AvgPoolOptions {
    const options = super.optionsFor(x);
    return this.countIncludePad ? options : { ...options, countIncludePad: false };
  }

  forward(x: Tensor): Tensor {
    return avgPool2d(x, this.optionsFor(x));
  }
}
