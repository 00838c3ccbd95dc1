import { DTypeError } from "@halfstep/autocast";
import * as kernels from "@halfstep/kernels";
import { checked } from "../arguments/arguments.js";
import * as kinds from "../arguments/kinds.js";
import { castOperand } from "../dispatch/cast.js";
import { defineOp, type Op, type Operand, type TensorSpec } from "../dispatch/op.js";
import { ShapeError } from "../errors.js";
import type { Tensor } from "../tensor/tensor.js";
import { add } from "./elementwise.js";

/** Options of {@link conv2d}; a pair is height and width. */
export interface Conv2dOptions {
  /** Default 1. */
  readonly stride?: number | readonly [number, number];
  /** Zeros on each side. Default 0. */
  readonly padding?: number | readonly [number, number];
  /** Default 1. */
  readonly dilation?: number | readonly [number, number];
  /** Groups of neighbouring channels, each convolved alone; as many as there are channels is depthwise. Default 1. */
  readonly groups?: number;
}

export const pair = (value: number | readonly [number, number]): readonly [number, number] =>
  typeof value === "number" ? [value, value] : value;

function attributesOf(
  input: readonly number[],
  weight: readonly number[],
  { stride = 1, padding = 0, dilation = 1, groups = 1 }: Conv2dOptions,
): kernels.Conv2dAttributes {
  if (input.length !== 4 || weight.length !== 4)
    throw new ShapeError(
      `conv2d needs an input [batch, height, width, channels] and a weight [height, width, in, out], not [${input}] and [${weight}]`,
    );
  const [batch, height, width, channels] = input as [number, number, number, number];
  const [kernelHeight, kernelWidth, groupChannels, outChannels] = weight as typeof input &
    [number, number, number, number];
  if (!Number.isInteger(groups) || groups < 1)
    throw new RangeError(`conv2d: groups ${groups} must be a whole number, at least 1`);
  if (channels !== groupChannels * groups)
    throw new ShapeError(
      `conv2d: the input has ${channels} channels, the weight takes ${groupChannels}${groups > 1 ? ` in each of ${groups} groups` : ""}`,
    );
  if (outChannels % groups !== 0)
    throw new ShapeError(
      `conv2d: ${outChannels} output channels cannot be divided into ${groups} groups`,
    );
  return {
    batch,
    height,
    width,
    inChannels: channels,
    outChannels,
    kernelHeight,
    kernelWidth,
    groups,
    stride: wholePair("stride", stride, 1),
    padding: wholePair("padding", padding, 0),
    dilation: wholePair("dilation", dilation, 1),
  };
}

function wholePair(
  name: string,
  value: number | readonly [number, number],
  least: number,
): readonly [number, number] {
  const sizes = pair(value);
  for (const size of sizes)
    if (!Number.isInteger(size) || size < least)
      throw new RangeError(`conv2d: ${name} [${sizes}] must be whole numbers, at least ${least}`);
  return sizes;
}

function outputShape(attributes: kernels.Conv2dAttributes): number[] {
  const [height, width] = kernels.conv2dOutputSize(attributes);
  if (height < 1 || width < 1) {
    const { kernelHeight, kernelWidth, padding, dilation } = attributes;
    throw new ShapeError(
      `conv2d: a window [${kernelHeight},${kernelWidth}] of dilation [${dilation}] does not fit into ${attributes.height}×${attributes.width} with padding [${padding}]`,
    );
  }
  return [attributes.batch, height, width, attributes.outChannels];
}

function sameDType(op: string, a: TensorSpec, b: TensorSpec): void {
  if (a.dtype !== b.dtype)
    throw new DTypeError(`${op}: operands are ${a.dtype} and ${b.dtype}; cast one with to()`);
}

export const convolve: Op<Conv2dOptions> = defineOp<Conv2dOptions>({
  name: "conv2d",
  castPolicy: "lowerPrecision",
  shape([x, w], options) {
    const input = x as TensorSpec;
    const weight = w as TensorSpec;
    sameDType("conv2d", input, weight);
    return [
      { shape: outputShape(attributesOf(input.shape, weight.shape, options)), dtype: input.dtype },
    ];
  },
  forward({ target, inputs, outputs, attributes }) {
    const [input, weight] = inputs as [Operand, Operand];
    const out = outputs[0] as Operand;
    kernels.conv2d(
      target,
      { input, weight, out },
      attributesOf(input.shape, weight.shape, attributes),
    );
  },
  backward({ inputs, gradients, needs, attributes }) {
    const [x, w] = inputs as [Tensor, Tensor];
    const g = gradients[0] as Tensor;
    const full = attributesOf(x.shape, w.shape, attributes);
    return [
      needs[0] ? inputGradient.apply([g, w], full) : undefined,
      needs[1] ? weightGradient.apply([x, g], full) : undefined,
    ];
  },
});

/** Gradient of a convolution by its input, from the output's gradient and the weight. */
export const inputGradient: Op<kernels.Conv2dAttributes> = defineOp<kernels.Conv2dAttributes>({
  name: "conv2dInputGradient",
  castPolicy: "lowerPrecision",
  shape([g], { batch, height, width, inChannels }) {
    return [{ shape: [batch, height, width, inChannels], dtype: (g as TensorSpec).dtype }];
  },
  forward({ target, inputs, outputs, attributes }) {
    const [outGradient, weight] = inputs as [Operand, Operand];
    const gradient = outputs[0] as Operand;
    kernels.conv2dInputGradient(
      target,
      { outGradient, weight, inputGradient: gradient },
      attributes,
    );
  },
  backward({ inputs, gradients, needs, attributes }) {
    const [g, w] = inputs as [Tensor, Tensor];
    const v = gradients[0] as Tensor;
    return [
      needs[0] ? convolve.apply([v, w], attributes) : undefined,
      needs[1] ? weightGradient.apply([v, g], attributes) : undefined,
    ];
  },
});

/** Gradient of a convolution by its weight, from the input and the output's gradient. */
const weightGradient: Op<kernels.Conv2dAttributes> = defineOp<kernels.Conv2dAttributes>({
  name: "conv2dWeightGradient",
  castPolicy: "lowerPrecision",
  shape([x], { kernelHeight, kernelWidth, inChannels, outChannels, groups = 1 }) {
    const { dtype } = x as TensorSpec;
    return [{ shape: [kernelHeight, kernelWidth, inChannels / groups, outChannels], dtype }];
  },
  forward({ target, inputs, outputs, attributes }) {
    const [input, outGradient] = inputs as [Operand, Operand];
    const gradient = outputs[0] as Operand;
    kernels.conv2dWeightGradient(
      target,
      { input, outGradient, weightGradient: gradient },
      attributes,
    );
  },
  backward({ inputs, gradients, needs, attributes }) {
    const [x, g] = inputs as [Tensor, Tensor];
    const v = gradients[0] as Tensor;
    return [
      needs[0] ? inputGradient.apply([g, v], attributes) : undefined,
      needs[1] ? convolve.apply([x, v], attributes) : undefined,
    ];
  },
});

/**
 * Convolution (cross-correlation, as in torch) of an input [batch, height, width, in] with a weight
 * [kernelHeight, kernelWidth, in / groups, out], plus a bias [out].
 */
export const conv2d: (
  input: Tensor,
  weight: Tensor,
  bias?: Tensor,
  options?: Conv2dOptions,
) => Tensor = checked(
  "conv2d",
  {
    input: kinds.tensor,
    weight: kinds.tensor,
    bias: kinds.optional(kinds.tensor),
    options: kinds.optionals({
      stride: kinds.sizes,
      padding: kinds.sizes,
      dilation: kinds.sizes,
      groups: kinds.number,
    }),
  },
  (input: Tensor, weight: Tensor, bias?: Tensor, options: Conv2dOptions = {}): Tensor => {
    const y = convolve.apply([input, weight], options);
    return bias ? add(y, castOperand(bias, y.dtype)) : y;
  },
);
