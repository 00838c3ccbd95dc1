import { avgPool1d, maxPool1d, type Pool1dOptions, type Tensor } from "@halfstep/tensor/functional";
import { requireArguments } from "../arguments.js";
import { Module } from "../module.js";
import { requirePoolPadding, requireWindow } from "./pair.js";

/** Windows of {@link MaxPool1d}. */
export interface Pool1dLayerOptions {
  readonly kernelSize: number;
  /** Default: the kernel size. */
  readonly stride?: number;
  /** Default 0. */
  readonly padding?: number;
  /** A last window may reach past the padding, as with torch's `ceil_mode`. Default false. */
  readonly ceilMode?: boolean;
}

/** Windows of {@link AvgPool1d}. */
export interface AvgPool1dLayerOptions extends Pool1dLayerOptions {
  /** Whether padding counts as zeros. Default true. */
  readonly countIncludePad?: boolean;
}

const windowsOf = ({ kernelSize: window, ...options }: Pool1dLayerOptions): Pool1dOptions => ({
  ...{ window, ...options },
});

/** Maximum of each window of sequences [batch, length, channels]. */
export class MaxPool1d extends Module {
  readonly options: Pool1dLayerOptions;

  constructor(options: Pool1dLayerOptions);
  constructor(options: Pool1dLayerOptions, ...surplus: readonly unknown[]) {
    super();
    const call = "new MaxPool1d({ kernelSize, stride?, padding?, ceilMode? })";
    requireArguments(call, options, ...surplus);
    requireWindow(call, 1, options);
    requirePoolPadding(call, options);
    this.options = options;
  }

  forward(x: Tensor): Tensor {
    return maxPool1d(x, windowsOf(this.options));
  }
}

/** Mean of each window of sequences [batch, length, channels]; padding counts as zeros, unless told otherwise. */
export class AvgPool1d extends Module {
  readonly options: AvgPool1dLayerOptions;

  constructor(options: AvgPool1dLayerOptions);
  constructor(options: AvgPool1dLayerOptions, ...surplus: readonly unknown[]) {
    super();
    const call = "new AvgPool1d({ kernelSize, stride?, padding?, ceilMode?, countIncludePad? })";
    requireArguments(call, options, ...surplus);
    requireWindow(call, 1, options);
    requirePoolPadding(call, options);
    this.options = options;
  }

  forward(x: Tensor): Tensor {
    return avgPool1d(x, windowsOf(this.options));
  }
}
