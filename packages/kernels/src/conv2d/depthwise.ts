import type { Binding, Launch } from "@halfstep/device";
import { depthwiseImage, depthwiseImageReversed } from "./depthwise/image.js";
import { depthwiseSpread } from "./depthwise/spread.js";
import { depthwiseWeight } from "./depthwise/weight.js";
import type { WindowScalars } from "./depthwise/window.js";
import type { GroupedShape } from "./grouped.js";

/**
 * Whether a depthwise convolution with 3×3 weights runs by windows: an invocation moves along a line with four channels and keeps
 * the pixels under the window. So a step loads only the new columns.
 */
export function takesWindows({ attributes, groups }: GroupedShape): boolean {
  const { inChannels, outChannels, kernelHeight, kernelWidth, stride, dilation } = attributes;
  return (
    inChannels === groups &&
    outChannels === groups &&
    groups % 4 === 0 &&
    kernelHeight === 3 &&
    kernelWidth === 3 &&
    dilation[0] === 1 &&
    dilation[1] === 1 &&
    (stride[1] === 1 || stride[1] === 2)
  );
}

export function depthwiseConv2d<B>(
  operands: { readonly input: Binding<B>; readonly weight: Binding<B>; readonly out: Binding<B> },
  shape: GroupedShape,
): Launch<B> {
  return {
    kernel: depthwiseImage[strideOf(shape)],
    bindings: [operands.input, operands.weight, operands.out],
    scalars: scalarsOf(shape),
  };
}

/** The same for the gradient by the input; without strides it is a convolution with reversed taps. */
export const takesWindowsBackward = (shape: GroupedShape): boolean =>
  takesWindows(shape) && (shape.attributes.stride[1] === 2 || shape.attributes.stride[0] === 1);

export function depthwiseInputGradient<B>(
  operands: {
    readonly outGradient: Binding<B>;
    readonly weight: Binding<B>;
    readonly inputGradient: Binding<B>;
  },
  shape: GroupedShape,
): Launch<B> {
  const forward = scalarsOf(shape);
  const isUnit = strideOf(shape) === 1;
  // More than two lines of padding cut off lines of the result: the unsigned number wraps around.
  const before = (padding: number): number => (isUnit ? (2 - padding) >>> 0 : padding);
  const scalars: WindowScalars = {
    ...forward,
    source_height: forward.target_height,
    source_width: forward.target_width,
    target_height: forward.source_height,
    target_width: forward.source_width,
    padding_y: before(forward.padding_y),
    padding_x: before(forward.padding_x),
  };
  return {
    kernel: isUnit ? depthwiseImageReversed : depthwiseSpread,
    bindings: [operands.outGradient, operands.weight, operands.inputGradient],
    scalars,
  };
}

/** Sums over lines with a stride: `parts` is [slices, 3, 3, channels]. */
export function depthwiseWeightGradient<B>(
  operands: {
    readonly input: Binding<B>;
    readonly outGradient: Binding<B>;
    readonly parts: Binding<B>;
  },
  shape: GroupedShape,
  slices: number,
): Launch<B> {
  return {
    kernel: depthwiseWeight[strideOf(shape)],
    bindings: [operands.input, operands.outGradient, operands.parts],
    scalars: { ...scalarsOf(shape), slices },
  };
}

/** Columns from one window to the next. */
const strideOf = ({ attributes }: GroupedShape): 1 | 2 => (attributes.stride[1] === 1 ? 1 : 2);

const scalarsOf = ({ attributes, outImage }: GroupedShape): WindowScalars => ({
  n: attributes.outChannels,
  images: attributes.batch,
  source_height: attributes.height,
  source_width: attributes.width,
  target_height: outImage[0],
  target_width: outImage[1],
  stride_y: attributes.stride[0],
  padding_y: attributes.padding[0],
  padding_x: attributes.padding[1],
});
