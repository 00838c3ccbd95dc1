import {
  batchNorm,
  batchNormInference,
  type Runtime,
  ShapeError,
  type Tensor,
  type Variable,
} from "@halfstep/tensor/functional";
import { requireArguments, requireTensors } from "../arguments.js";
import { buffer, Module, parameter } from "../module.js";
import type { TorchLayout } from "../torch-layout.js";

/** Options of batch norms. */
export interface BatchNormLayerOptions {
  /** Added to the variance. Default 1e-5. */
  readonly eps?: number;
  /** Weight of a batch in the running statistics: running ← (1 − momentum) · running + momentum · batch. Default 0.1. */
  readonly momentum?: number;
  /** Whether the layer scales and shifts what it has normalised. Default true. */
  readonly affine?: boolean;
  /** Initial value of the weights. Default 1. */
  readonly initialWeight?: number;
}

/** Normalises a batch of a batch norm in training, and moves its running statistics. */
export type BatchNormalization = (x: Tensor) => Tensor;

/**
 * Batch normalisation of each channel, the last dimension, in the dtype of the input; it computes in float32, and statistics are
 * float32 in every precision, parameters unless a recipe says otherwise. In training it normalises by the batch, with the biased variance,
 * and moves the running statistics by the mean and the unbiased variance; in evaluation mode it normalises by the running statistics.
 */
export abstract class BatchNorm extends Module {
  readonly channels: number;
  readonly eps: number;
  readonly momentum: number;
  /** [channels]; undefined without `affine`. */
  readonly weight: Variable | undefined;
  /** [channels]; undefined without `affine`. */
  readonly bias: Variable | undefined;
  /** [channels] */
  readonly runningMean: Variable;
  /** [channels] */
  readonly runningVar: Variable;
  /** Normalises in training in place of the batch's own statistics: `syncBatchNorm` sets it. */
  normalization: BatchNormalization | undefined;
  /** What takes the place of weight and bias without `affine`. */
  readonly #neutral: readonly [weight: Tensor, bias: Tensor] | undefined;

  constructor(runtime: Runtime, channels: number, options?: BatchNormLayerOptions);
  constructor(
    runtime: Runtime,
    channels: number,
    options: BatchNormLayerOptions = {},
    ...surplus: readonly unknown[]
  ) {
    super();
    requireArguments(
      `new ${new.target.name}(runtime, channels, { eps?, momentum?, affine?, initialWeight? })`,
      runtime,
      channels,
      options,
      ...surplus,
    );
    const { eps = 1e-5, momentum = 0.1, affine = true, initialWeight = 1 } = options;
    this.channels = channels;
    this.eps = eps;
    this.momentum = momentum;
    const zeros = new Float32Array(channels);
    const ones = new Float32Array(channels).fill(1);
    const shape = [channels];
    if (affine) {
      const weights = new Float32Array(channels).fill(initialWeight);
      this.weight = parameter(runtime, weights, shape, "weight");
      this.bias = parameter(runtime, zeros, shape, "bias");
    } else {
      const [one, zero] = [ones, zeros].map((values) => runtime.variable(values, shape));
      this.#neutral = [one as Tensor, zero as Tensor];
    }
    this.runningMean = buffer(runtime, zeros, shape, "runningMean");
    this.runningVar = buffer(runtime, ones, shape, "runningVar");
  }

  override get keepsFloat32(): boolean {
    return true;
  }

  override get torchLayout(): TorchLayout {
    return { ignored: ["num_batches_tracked"] };
  }

  /** The factors and terms of channels: weight and bias, or ones and zeros. */
  get scaleAndShift(): readonly [weight: Tensor, bias: Tensor] {
    return this.#neutral ?? [this.weight as Tensor, this.bias as Tensor];
  }

  /** The dimensions of an input before its channels, by their names. */
  protected abstract get dimensions(): readonly (readonly string[])[];

  /** @param x [batch, ..., channels] */
  forward(x: Tensor): Tensor {
    requireTensors(this.label, x);
    const { channels, eps, momentum } = this;
    if (
      x.shape.at(-1) !== channels ||
      !this.dimensions.some(({ length }) => length === x.rank - 1)
    ) {
      const inputs = this.dimensions.map((names) => `[${names.join(", ")}, ${channels}]`);
      throw new ShapeError(`${this.label} needs an input ${inputs.join(" or ")}, not [${x.shape}]`);
    }
    const running = { mean: this.runningMean, variance: this.runningVar };
    const [weight, bias] = this.scaleAndShift;
    if (!this.isTraining) return batchNormInference(x, weight, bias, running, { eps });
    if (this.normalization) return this.normalization(x);
    if (x.size < 2 * channels)
      throw new ShapeError(
        `${this.label} got one value a channel, [${x.shape}], which has no variance: train on more, or call eval()`,
      );
    return batchNorm(x, weight, bias, { eps, running, momentum }).output;
  }
}

/** {@link BatchNorm} of vectors [batch, channels] or sequences [batch, length, channels]; torch.nn.BatchNorm1d, channels last. */
export class BatchNorm1d extends BatchNorm {
  protected override get dimensions(): readonly (readonly string[])[] {
    return [["batch"], ["batch", "length"]];
  }
}

/** {@link BatchNorm} of images [batch, height, width, channels]; torch.nn.BatchNorm2d, channels last. */
export class BatchNorm2d extends BatchNorm {
  protected override get dimensions(): readonly (readonly string[])[] {
    return [["batch", "height", "width"]];
  }
}

/** {@link BatchNorm} of volumes [batch, depth, height, width, channels]; torch.nn.BatchNorm3d, channels last. */
export class BatchNorm3d extends BatchNorm {
  protected override get dimensions(): readonly (readonly string[])[] {
    return [["batch", "depth", "height", "width"]];
  }
}
