import type { Binding, Launch, LaunchTarget } from "@halfstep/device";
import { groupedConv2d, groupedInputGradient, groupedWeightGradient } from "./conv2d/grouped.js";
import { gatherKernel, inputGradientKernel, weightGradientKernel } from "./conv2d/kernels.js";
import { planProduct, planTiles } from "./matmul/shape.js";
import { requireLengths } from "./operands.js";
import { launchProduct } from "./split-k.js";

/** A two-dimensional convolution (cross-correlation, as in torch) of NHWC activations with HWIO weights. */
export interface Conv2dAttributes {
  readonly batch: number;
  /** Of the input. */
  readonly height: number;
  readonly width: number;
  readonly inChannels: number;
  readonly outChannels: number;
  readonly kernelHeight: number;
  readonly kernelWidth: number;
  /** Vertical, horizontal; likewise below. */
  readonly stride: readonly [number, number];
  /** Zeros on each side. */
  readonly padding: readonly [number, number];
  readonly dilation: readonly [number, number];
  /** Groups of neighbouring channels, each convolved alone; the weight's inputs are those of one group. Default 1. */
  readonly groups?: number;
}

/** Height and width of the output: ⌊(size + 2 padding − dilation (kernel − 1) − 1) / stride⌋ + 1, as torch.nn.Conv2d. */
export function conv2dOutputSize(
  attributes: Omit<Conv2dAttributes, "batch" | "inChannels" | "outChannels">,
): readonly [height: number, width: number] {
  const { height, width, kernelHeight, kernelWidth, stride, padding, dilation } = attributes;
  const along = (d: 0 | 1, size: number, kernel: number): number => {
    const reach = dilation[d] * (kernel - 1) + 1;
    return Math.max(0, Math.floor((size + 2 * padding[d] - reach) / stride[d]) + 1);
  };
  return [along(0, height, kernelHeight), along(1, width, kernelWidth)];
}

/**
 * out[b, y, x, o] = Σ input[b, y·stride + i·dilation − padding, …, c] · weight[i, j, c, o] over i, j, c, accumulated in float32.
 *
 * @param operands `input` [batch, height, width, inChannels], `weight` [kernelHeight, kernelWidth, inChannels, outChannels],
 * `out` [batch, outHeight, outWidth, outChannels]
 * @throws RangeError where lengths and attributes disagree.
 */
export function conv2d<B>(
  target: LaunchTarget<B>,
  operands: { readonly input: Binding<B>; readonly weight: Binding<B>; readonly out: Binding<B> },
  attributes: Conv2dAttributes,
): void {
  const { input, weight, out } = operands;
  const size = sizeOf("conv2d", attributes);
  requireLengths("conv2d", operands, {
    input: size.input,
    weight: size.weight,
    out: size.output,
  });
  const { inChannels, outChannels } = attributes;
  if (size.groups > 1) {
    target.launch(groupedConv2d(operands, { attributes, ...size }));
    return;
  }
  const m = size.output / Math.max(1, outChannels);
  const plan = { ...planTiles(m, outChannels), splits: 1 };
  const kernel = gatherKernel(plan, inChannels % 4 === 0);
  launchProduct(target, plan, out, { batch: 1, m, n: outChannels }, (result) => ({
    kernel,
    bindings: [input, weight, result],
    scalars: {
      ...window(attributes),
      m,
      n: outChannels,
      columns: plan.columns,
      slices: 1,
      images: attributes.batch,
      target_height: size.outHeight,
      target_width: size.outWidth,
      source_height: attributes.height,
      source_width: attributes.width,
      channels: inChannels,
    },
  }));
}

/** The gradient of {@link conv2d} by its input; shapes as there. */
export function conv2dInputGradient<B>(
  target: LaunchTarget<B>,
  operands: {
    readonly outGradient: Binding<B>;
    readonly weight: Binding<B>;
    readonly inputGradient: Binding<B>;
  },
  attributes: Conv2dAttributes,
): void {
  const { outGradient, weight, inputGradient } = operands;
  const size = sizeOf("conv2dInputGradient", attributes);
  requireLengths("conv2dInputGradient", operands, {
    outGradient: size.output,
    weight: size.weight,
    inputGradient: size.input,
  });
  if (size.groups > 1) {
    target.launch(groupedInputGradient(operands, { attributes, ...size }));
    return;
  }
  const { inChannels, outChannels, stride, height, width } = attributes;
  const m = size.input / Math.max(1, inChannels);
  const plan = { ...planTiles(m, inChannels), splits: 1 };
  const isUnitStride = stride[0] === 1 && stride[1] === 1;
  const kernel = inputGradientKernel(plan, outChannels % 4 === 0, isUnitStride);
  launchProduct(target, plan, inputGradient, { batch: 1, m, n: inChannels }, (result) => ({
    kernel,
    bindings: [outGradient, weight, result],
    scalars: {
      ...window(attributes),
      m,
      n: inChannels,
      columns: plan.columns,
      slices: 1,
      images: attributes.batch,
      target_height: height,
      target_width: width,
      source_height: size.outHeight,
      source_width: size.outWidth,
      channels: outChannels,
    },
  }));
}

/** The gradient of {@link conv2d} by its weight; shapes as there. Takes scratch memory where the weight is small. */
export function conv2dWeightGradient<B>(
  target: LaunchTarget<B>,
  operands: {
    readonly input: Binding<B>;
    readonly outGradient: Binding<B>;
    readonly weightGradient: Binding<B>;
  },
  attributes: Conv2dAttributes,
): void {
  const { input, outGradient, weightGradient } = operands;
  const size = sizeOf("conv2dWeightGradient", attributes);
  requireLengths("conv2dWeightGradient", operands, {
    input: size.input,
    outGradient: size.output,
    weightGradient: size.weight,
  });
  if (size.groups > 1) {
    groupedWeightGradient(target, operands, { attributes, ...size });
    return;
  }
  const { inChannels, outChannels } = attributes;
  const m = size.weight / Math.max(1, outChannels);
  const pixels = size.output / Math.max(1, outChannels);
  const plan = planProduct(m, outChannels, pixels);
  const kernel = weightGradientKernel(plan, inChannels % 4 === 0);
  launchProduct(
    target,
    plan,
    weightGradient,
    { batch: 1, m, n: outChannels },
    (result): Launch<B> => ({
      kernel,
      bindings: [input, outGradient, result],
      scalars: {
        ...window(attributes),
        m,
        n: outChannels,
        columns: plan.columns,
        slices: plan.splits,
        images: attributes.batch,
        target_height: size.outHeight,
        target_width: size.outWidth,
        source_height: attributes.height,
        source_width: attributes.width,
        channels: inChannels,
      },
    }),
  );
}

function sizeOf(op: string, attributes: Conv2dAttributes) {
  const { batch, height, width, inChannels, outChannels, kernelHeight, kernelWidth } = attributes;
  const { stride, padding, dilation, groups = 1 } = attributes;
  const isCount = (n: number): boolean => Number.isSafeInteger(n) && n >= 0;
  if (![...stride, ...dilation].every((n) => isCount(n) && n > 0) || !padding.every(isCount))
    throw new RangeError(
      `${op}: stride [${stride}] and dilation [${dilation}] must be positive integers, padding [${padding}] not negative`,
    );
  if (!isCount(groups) || inChannels % groups !== 0 || outChannels % groups !== 0)
    throw new RangeError(
      `${op}: ${inChannels} input and ${outChannels} output channels cannot be divided into ${groups} groups`,
    );
  const [outHeight, outWidth] = conv2dOutputSize(attributes);
  return {
    groups,
    input: batch * height * width * inChannels,
    weight: (kernelHeight * kernelWidth * inChannels * outChannels) / groups,
    output: batch * outHeight * outWidth * outChannels,
    outHeight,
    outWidth,
  };
}

const window = ({ kernelHeight, kernelWidth, stride, padding, dilation }: Conv2dAttributes) => ({
  kernel_height: kernelHeight,
  kernel_width: kernelWidth,
  stride_y: stride[0],
  stride_x: stride[1],
  padding_y: padding[0],
  padding_x: padding[1],
  dilation_y: dilation[0],
  dilation_x: dilation[1],
});
