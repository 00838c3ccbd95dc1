import type { Binding, Launch, LaunchTarget } from "@halfstep/device";
import { launchSlices, type Slices } from "./conv2d/assemble.js";
import { groupedConv2d, groupedInputGradient, groupedWeightGradient } from "./conv2d/grouped.js";
import { gatherKernel, inputGradientKernel, weightGradientKernel } from "./conv2d/kernels.js";
import { type PatchSize, patchSize } from "./conv2d/patch.js";
import { type ProductPlan, planProduct, planTiles } from "./matmul/shape.js";
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
  const { groups, groupIn, groupOut } = size;
  if (groups > 1 && isSmall(size)) {
    target.launch(groupedConv2d(operands, { attributes, ...size }));
    return;
  }
  const m = size.output / Math.max(1, attributes.outChannels);
  const plan = { ...planTiles(m, groupOut), splits: 1 };
  const patch = planPatch(attributes, plan, size);
  const kernel = gatherKernel(plan, groupIn % 4 === 0, patch);
  launch(target, plan, out, { ...size, m, n: groupOut, width: m }, (result) => ({
    kernel,
    bindings: [input, weight, result],
    scalars: {
      ...window(attributes),
      ...undivided,
      m,
      n: groupOut,
      columns: plan.columns,
      slices: groups,
      groups,
      images: attributes.batch,
      target_height: size.outHeight,
      target_width: size.outWidth,
      source_height: attributes.height,
      source_width: attributes.width,
      channels: groupIn,
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
  const { groups, groupIn, groupOut } = size;
  if (groups > 1 && isSmall(size)) {
    target.launch(groupedInputGradient(operands, { attributes, ...size }));
    return;
  }
  const { batch, height, width, stride, dilation } = attributes;
  const isQuads = groupOut % 4 === 0;
  const isUnit = stride[0] === 1 && stride[1] === 1;
  const hasPhases = !isUnit && isQuads && dilation[0] === 1 && dilation[1] === 1;
  const phases = hasPhases ? stride : ([1, 1] as const);
  const gridHeight = Math.ceil(height / phases[0]);
  const gridWidth = Math.ceil(width / phases[1]);
  const m = batch * gridHeight * gridWidth;
  const plan = { ...planTiles(m, groupIn), splits: 1 };
  const kernel = inputGradientKernel(plan, isQuads, isUnit ? "unit" : hasPhases ? "phases" : "any");
  const slices = { groups, m, n: groupIn, phases, height, width };
  launch(target, plan, inputGradient, slices, (result) => ({
    kernel,
    bindings: [outGradient, weight, result],
    scalars: {
      ...window(attributes),
      m,
      n: groupIn,
      columns: plan.columns,
      slices: phases[0] * phases[1] * groups,
      groups,
      splits: 1,
      phases_y: phases[0],
      phases_x: phases[1],
      images: batch,
      target_height: gridHeight,
      target_width: gridWidth,
      source_height: size.outHeight,
      source_width: size.outWidth,
      channels: groupOut,
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
  const { groups, groupIn, groupOut } = size;
  if (groups > 1 && isSmall(size)) {
    groupedWeightGradient(target, operands, { attributes, ...size });
    return;
  }
  const { outChannels } = attributes;
  const m = size.weight / Math.max(1, outChannels);
  const pixels = size.output / Math.max(1, outChannels);
  const plan = planProduct(m, groupOut, pixels, groups);
  const kernel = weightGradientKernel(plan, groupIn % 4 === 0);
  launch(
    target,
    plan,
    weightGradient,
    { ...size, m, n: groupOut, width: m },
    (result): Launch<B> => ({
      kernel,
      bindings: [input, outGradient, result],
      scalars: {
        ...window(attributes),
        ...undivided,
        m,
        n: groupOut,
        columns: plan.columns,
        slices: groups * plan.splits,
        groups,
        splits: plan.splits,
        images: attributes.batch,
        target_height: size.outHeight,
        target_width: size.outWidth,
        source_height: attributes.height,
        source_width: attributes.width,
        channels: groupIn,
      },
    }),
  );
}

/**
 * The squares of pixels by which windows of 3×3 are computed that move one pixel at a time, where lanes have two columns: with
 * wider ones, loads count for less than the longer programs do.
 */
function planPatch(
  { inChannels, groups = 1, kernelHeight, kernelWidth, stride, dilation }: Conv2dAttributes,
  plan: ProductPlan,
  { outHeight, outWidth }: { readonly outHeight: number; readonly outWidth: number },
): PatchSize | undefined {
  const isPlain = [...stride, ...dilation, groups].every((step) => step === 1);
  if (!isPlain || kernelHeight !== 3 || kernelWidth !== 3) return undefined;
  if (plan.width !== 2 || !plan.isAligned || plan.rows !== 32) return undefined;
  // Tiles load each pixel of few channels one by one, nine times.
  return patchSize(outHeight, outWidth, inChannels < 4 ? 0.7 : 0.95);
}

/** One part of one phase. */
const undivided = { splits: 1, phases_y: 1, phases_x: 1 } as const;

/** Launches a product of groups or phases, which must be assembled, or of none. */
function launch<B>(
  target: LaunchTarget<B>,
  plan: ProductPlan,
  out: Binding<B>,
  slices: Partial<Slices> & Pick<Slices, "m" | "n" | "groups" | "width">,
  product: (result: Binding<B>) => Launch<B>,
): void {
  const { m, n, groups, phases = [1, 1], height = 1, width } = slices;
  if (groups === 1 && phases[0] === 1 && phases[1] === 1)
    launchProduct(target, plan, out, { batch: 1, m, n }, product);
  else launchSlices(target, plan, out, { m, n, groups, phases, height, width }, product);
}

/** Groups that would leave most of a tile empty. */
const isSmall = ({ groupIn, groupOut }: { groupIn: number; groupOut: number }): boolean =>
  groupIn < 4 || groupOut < 4;

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
    groupIn: inChannels / Math.max(1, groups),
    groupOut: outChannels / Math.max(1, groups),
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
