import {
  groupNorm,
  instanceNorm,
  layerNorm,
  type NormOptions,
  type RmsNormOptions,
  type Runtime,
  rmsNorm,
  ShapeError,
  type Tensor,
  type Variable,
} from "@halfstep/tensor/functional";
import { requireArguments } from "../arguments.js";
import { Module, parameter } from "../module.js";
import type { TorchLayout } from "../torch-layout.js";

type Size = number | readonly number[];

const shapeOf = (size: Size): readonly number[] => (typeof size === "number" ? [size] : size);

const filled = (
  runtime: Runtime,
  shape: readonly number[],
  value: number,
  name: string,
): Variable => {
  const count = shape.reduce((a, b) => a * b, 1);
  return parameter(runtime, new Float32Array(count).fill(value), shape, name);
};

/** Options of normalising layers. */
export interface AffineOptions {
  /** Whether the layer scales what it has normalised. Default true. */
  readonly affine?: boolean;
  /** Whether it shifts it, too. Default true. */
  readonly bias?: boolean;
}

/** Normalises over the last dimensions, which are those of `normalizedShape`, with float32 statistics; torch.nn.LayerNorm. */
export class LayerNorm extends Module {
  readonly normalizedShape: readonly number[];
  readonly options: NormOptions;
  /** [...normalizedShape] */
  readonly weight: Variable | undefined;
  /** [...normalizedShape] */
  readonly bias: Variable | undefined;

  constructor(runtime: Runtime, normalizedShape: Size, given?: AffineOptions & NormOptions);
  constructor(
    runtime: Runtime,
    normalizedShape: Size,
    given: AffineOptions & NormOptions = {},
    ...surplus: readonly unknown[]
  ) {
    super();
    requireArguments(
      "new LayerNorm(runtime, normalizedShape, { eps?, affine?, bias? })",
      runtime,
      normalizedShape,
      given,
      ...surplus,
    );
    const { affine = true, bias = true, ...options } = given;
    this.normalizedShape = shapeOf(normalizedShape);
    this.options = options;
    this.weight = affine ? filled(runtime, this.normalizedShape, 1, "weight") : undefined;
    this.bias = affine && bias ? filled(runtime, this.normalizedShape, 0, "bias") : undefined;
  }

  override get torchLayout(): TorchLayout {
    return { aliases: { gamma: "weight", beta: "bias" } };
  }

  /** @param x [..., ...normalizedShape] */
  forward(x: Tensor): Tensor {
    return layerNorm(x, this.normalizedShape, this.weight, this.bias, this.options);
  }
}

/** Divides by the root of the mean square over the last dimensions, which are those of `normalizedShape`; torch.nn.RMSNorm. */
export class RMSNorm extends Module {
  readonly normalizedShape: readonly number[];
  readonly options: RmsNormOptions;
  /** [...normalizedShape] */
  readonly weight: Variable | undefined;

  constructor(
    runtime: Runtime,
    normalizedShape: Size,
    given?: Omit<AffineOptions, "bias"> & RmsNormOptions,
  );
  constructor(
    runtime: Runtime,
    normalizedShape: Size,
    given: Omit<AffineOptions, "bias"> & RmsNormOptions = {},
    ...surplus: readonly unknown[]
  ) {
    super();
    requireArguments(
      "new RMSNorm(runtime, normalizedShape, { eps?, affine? })",
      runtime,
      normalizedShape,
      given,
      ...surplus,
    );
    const { affine = true, ...options } = given;
    this.normalizedShape = shapeOf(normalizedShape);
    this.options = options;
    this.weight = affine ? filled(runtime, this.normalizedShape, 1, "weight") : undefined;
  }

  /** @param x [..., ...normalizedShape] */
  forward(x: Tensor): Tensor {
    return rmsNorm(x, this.normalizedShape, this.weight, this.options);
  }
}

/** Normalises each of `groups` groups of neighbouring channels of [batch, ..., channels]; torch.nn.GroupNorm, channels last. */
export class GroupNorm extends Module {
  readonly groups: number;
  readonly options: NormOptions;
  /** [channels] */
  readonly weight: Variable | undefined;
  /** [channels] */
  readonly bias: Variable | undefined;

  constructor(
    runtime: Runtime,
    groups: number,
    channels: number,
    given?: AffineOptions & NormOptions,
  );
  constructor(
    runtime: Runtime,
    groups: number,
    channels: number,
    given: AffineOptions & NormOptions = {},
    ...surplus: readonly unknown[]
  ) {
    super();
    requireArguments(
      "new GroupNorm(runtime, groups, channels, { eps?, affine?, bias? })",
      runtime,
      groups,
      channels,
      given,
      ...surplus,
    );
    const { affine = true, bias = true, ...options } = given;
    if (channels % groups !== 0)
      throw new RangeError(
        `GroupNorm: ${channels} channels cannot be divided into ${groups} groups`,
      );
    this.groups = groups;
    this.options = options;
    this.weight = affine ? filled(runtime, [channels], 1, "weight") : undefined;
    this.bias = affine && bias ? filled(runtime, [channels], 0, "bias") : undefined;
  }

  /** @param x [batch, ..., channels] */
  forward(x: Tensor): Tensor {
    return groupNorm(x, this.groups, this.weight, this.bias, this.options);
  }
}

/** Normalises each channel of each sample of [batch, height, width, channels] over its pixels; torch.nn.InstanceNorm2d, channels last. */
export class InstanceNorm2d extends Module {
  readonly options: NormOptions;
  /** [channels] */
  readonly weight: Variable | undefined;
  /** [channels] */
  readonly bias: Variable | undefined;

  /** As in torch it has no parameters, unless `affine` is true. */
  constructor(
    runtime: Runtime,
    channels: number,
    given?: Omit<AffineOptions, "bias"> & NormOptions,
  );
  constructor(
    runtime: Runtime,
    channels: number,
    given: Omit<AffineOptions, "bias"> & NormOptions = {},
    ...surplus: readonly unknown[]
  ) {
    super();
    requireArguments(
      "new InstanceNorm2d(runtime, channels, { eps?, affine? })",
      runtime,
      channels,
      given,
      ...surplus,
    );
    const { affine = false, ...options } = given;
    this.options = options;
    this.weight = affine ? filled(runtime, [channels], 1, "weight") : undefined;
    this.bias = affine ? filled(runtime, [channels], 0, "bias") : undefined;
  }

  /**
   * @param x [batch, height, width, channels]
   * @throws ShapeError for images of one pixel, as in torch: it has no variance, and all results would be zeros.
   */
  forward(x: Tensor): Tensor {
    if (x.rank > 2 && x.shape.slice(1, -1).every((size) => size === 1))
      throw new ShapeError(
        `${this.label} got one pixel a channel, [${x.shape}], which has no variance: pass larger images`,
      );
    return instanceNorm(x, this.weight, this.bias, this.options);
  }
}
