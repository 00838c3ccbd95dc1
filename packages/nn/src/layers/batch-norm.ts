import {
  batchNorm,
  batchNormInference,
  type Runtime,
  ShapeError,
  type Tensor,
  type Variable,
} from "@halfstep/tensor/functional";
import { requireArguments } from "../arguments.js";
import { buffer, Module, parameter } from "../module.js";
import type { TorchLayout } from "../torch-layout.js";

/** Options of {@link BatchNorm2d}. */
export interface BatchNorm2dOptions {
  /** Added to the variance. Default 1e-5. */
  readonly eps?: number;
  /** Weight of a batch in the running statistics: running ← (1 − momentum) · running + momentum · batch. Default 0.1. */
  readonly momentum?: number;
  /** Initial value of the weights. Default 1. */
  readonly initialWeight?: number;
}

/** Normalises a batch of a batch norm in training, and moves its running statistics. */
export type BatchNormalization = (x: Tensor) => Tensor;

/**
 * Batch normalisation of images [batch, height, width, channels], in their dtype; it computes in float32, and statistics are
 * float32 in every precision, parameters unless a recipe says otherwise. In training it normalises by the batch, with the biased variance, and moves the running statistics by
 * the mean and the unbiased variance; in evaluation mode it normalises by the running statistics.
 */
export class BatchNorm2d extends Module {
  readonly channels: number;
  readonly eps: number;
  readonly momentum: number;
  /** [channels] */
  readonly weight: Variable;
  /** [channels] */
  readonly bias: Variable;
  /** [channels] */
  readonly runningMean: Variable;
  /** [channels] */
  readonly runningVar: Variable;
  /** Normalises in training in place of the batch's own statistics: `syncBatchNorm` sets it. */
  normalization: BatchNormalization | undefined;

  constructor(runtime: Runtime, channels: number, options: BatchNorm2dOptions = {}) {
    super();
    requireArguments(
      "new BatchNorm2d(runtime, channels, { eps?, momentum?, initialWeight? })",
      runtime,
      channels,
      options,
    );
    const { eps = 1e-5, momentum = 0.1, initialWeight = 1 } = options;
    this.channels = channels;
    this.eps = eps;
    this.momentum = momentum;
    const zeros = new Float32Array(channels);
    const ones = new Float32Array(channels).fill(1);
    this.weight = parameter(
      runtime,
      ones.map(() => initialWeight),
      [channels],
      "weight",
    );
    this.bias = parameter(runtime, zeros, [channels], "bias");
    this.runningMean = buffer(runtime, zeros, [channels], "runningMean");
    this.runningVar = buffer(runtime, ones, [channels], "runningVar");
  }

  override get keepsFloat32(): boolean {
    return true;
  }

  override get torchLayout(): TorchLayout {
    return { ignored: ["num_batches_tracked"] };
  }

  /** @param x [batch, height, width, channels] */
  forward(x: Tensor): Tensor {
    const { channels, eps, momentum, weight, bias } = this;
    if (x.rank !== 4 || x.shape[3] !== channels)
      throw new ShapeError(
        `${this.label} needs an input [batch, height, width, ${channels}], not [${x.shape}]`,
      );
    const running = { mean: this.runningMean, variance: this.runningVar };
    if (!this.isTraining) return batchNormInference(x, weight, bias, running, { eps });
    if (this.normalization) return this.normalization(x);
    if (x.size < 2 * channels)
      throw new ShapeError(
        `${this.label} got one value a channel, [${x.shape}], which has no variance: train on more, or call eval()`,
      );
    return batchNorm(x, weight, bias, { eps, running, momentum }).output;
  }
}
