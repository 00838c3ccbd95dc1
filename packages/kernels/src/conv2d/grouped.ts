import type { Binding, Launch, LaunchTarget } from "@halfstep/device";
import { reduce } from "../reductions/reduce.js";
import { scratch } from "../scratch.js";
import type { Conv2dAttributes } from "./attributes.js";
import {
  depthwiseConv2d,
  depthwiseInputGradient,
  depthwiseWeightGradient,
  takesWindows,
  takesWindowsBackward,
} from "./depthwise.js";
import {
  forwardKernels,
  type GroupedKernels,
  type GroupedScalars,
  inputGradientKernels,
  weightGradientKernels,
} from "./grouped-kernels.js";
import type { ImageSize } from "./launch.js";

/** The attributes of a grouped convolution, with derived sizes. */
export interface GroupedShape {
  readonly attributes: Conv2dAttributes;
  readonly groups: number;
  readonly outImage: ImageSize;
}

/**
 * Convolves small groups of channels by direct sums, one element per lane: each group alone would leave most of a tile empty.
 * Depthwise kernels process four channels together.
 */
export const groupedConv2d = <B>(
  operands: { readonly input: Binding<B>; readonly weight: Binding<B>; readonly out: Binding<B> },
  shape: GroupedShape,
): Launch<B> =>
  takesWindows(shape)
    ? depthwiseConv2d(operands, shape)
    : launchOf(forwardKernels, [operands.input, operands.weight, operands.out], shape, {
        n: shape.attributes.outChannels,
      });

export const groupedInputGradient = <B>(
  operands: {
    readonly outGradient: Binding<B>;
    readonly weight: Binding<B>;
    readonly inputGradient: Binding<B>;
  },
  shape: GroupedShape,
): Launch<B> => {
  const { outGradient, weight, inputGradient } = operands;
  if (takesWindowsBackward(shape)) return depthwiseInputGradient(operands, shape);
  return launchOf(inputGradientKernels, [outGradient, weight, inputGradient], shape, {
    n: shape.attributes.inChannels,
  });
};

/** The result has few elements with long sums: the pixels are summed in slices, and the slices by a second launch. */
export function groupedWeightGradient<B>(
  target: LaunchTarget<B>,
  operands: {
    readonly input: Binding<B>;
    readonly outGradient: Binding<B>;
    readonly weightGradient: Binding<B>;
  },
  shape: GroupedShape,
): void {
  const { input, outGradient, weightGradient } = operands;
  const size = weightGradient.length;
  const lines = shape.attributes.batch * shape.outImage[0];
  const hasWindows = takesWindows(shape);
  const [pieces, enough] = hasWindows
    ? [lines, (4 * enoughInvocations) / shape.groups]
    : [(lines * shape.outImage[1]) / 64, enoughElements / Math.max(1, size)];
  const slices = Math.max(1, Math.min(Math.ceil(pieces), Math.ceil(enough)));
  const parts = slices === 1 ? weightGradient : scratch(target, slices * size);
  target.launch(
    hasWindows
      ? depthwiseWeightGradient({ input, outGradient, parts }, shape, slices)
      : launchOf(weightGradientKernels, [input, outGradient, parts], shape, {
          n: shape.attributes.outChannels,
          slices,
        }),
  );
  if (slices > 1)
    reduce(
      target,
      { input: parts, out: weightGradient },
      { op: "sum", outer: 1, size: slices, inner: size },
    );
}

/** Invocations that iterate over lines, and elements of partial sums, that keep a device busy. */
const enoughInvocations = 2048;
const enoughElements = 16_384;

function launchOf<B>(
  kernels: GroupedKernels,
  bindings: readonly Binding<B>[],
  { attributes, groups, outImage }: GroupedShape,
  { n, slices = 1 }: { readonly n: number; readonly slices?: number },
): Launch<B> {
  const { inChannels, outChannels, stride, padding, dilation } = attributes;
  const isDepthwise = inChannels === groups && outChannels === groups && groups % 4 === 0;
  const scalars: GroupedScalars = {
    count: (bindings[2] as Binding<B>).length,
    n,
    slices,
    images: attributes.batch,
    in_height: attributes.height,
    in_width: attributes.width,
    in_channels: inChannels,
    out_height: outImage[0],
    out_width: outImage[1],
    out_channels: outChannels,
    group_in: inChannels / groups,
    group_out: outChannels / groups,
    kernel_height: attributes.kernelHeight,
    kernel_width: attributes.kernelWidth,
    stride_y: stride[0],
    stride_x: stride[1],
    padding_y: padding[0],
    padding_x: padding[1],
    dilation_y: dilation[0],
    dilation_x: dilation[1],
  };
  const kernel = kernels[isDepthwise ? "depthwise" : "grouped"];
  return { kernel, bindings, scalars };
}
