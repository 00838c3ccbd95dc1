import type { Binding, LaunchTarget } from "@halfstep/device";
import type { Conv2dAttributes } from "./conv2d/attributes.js";
import { decidedOnce } from "./conv2d/decisions.js";
import { groupedConv2d, groupedInputGradient, groupedWeightGradient } from "./conv2d/grouped.js";
import {
  gatherKernel,
  inputGradientKernel,
  planBlocks,
  weightGradientKernel,
} from "./conv2d/kernels.js";
import { launchConvolution, type PlannedConvolution, planConvolution } from "./conv2d/launch.js";
import { planPatch, planRun, planTurnedPatch } from "./conv2d/plan-patch.js";
import { planProduct, planTiles } from "./matmul/shape.js";
import { requireLengths, requireTarget } from "./operands.js";

export type { Conv2dAttributes } from "./conv2d/attributes.js";

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
 * @throws RangeError where lengths and attributes disagree. TypeError without a target, or without one of the pairs of numbers.
 */
export function conv2d<B>(
  target: LaunchTarget<B>,
  operands: { readonly input: Binding<B>; readonly weight: Binding<B>; readonly out: Binding<B> },
  attributes: Conv2dAttributes,
): void {
  requireTarget("conv2d", target);
  const { input, weight, out } = operands;
  const { size, planned } = forwardDecision(attributes, target.hardwareClass);
  requireLengths("conv2d", operands, {
    input: size.input,
    weight: size.weight,
    out: size.output,
  });
  if (planned) launchConvolution(target, planned, [input, weight], out);
  else target.launch(groupedConv2d(operands, { attributes, ...size }));
}

/** The sizes of a convolution, and its product; undefined where a kernel for small groups computes it. */
interface Decision {
  readonly size: ReturnType<typeof sizeOf>;
  readonly planned: PlannedConvolution | undefined;
}

const forwardDecision = decidedOnce((attributes): Decision => {
  const size = sizeOf("conv2d", attributes);
  if (size.groups > 1 && isSmall(size)) return { size, planned: undefined };
  const { groups, groupIn, groupOut, image, outImage } = size;
  const m = size.output / Math.max(1, attributes.outChannels);
  const plan = {
    ...planTiles(m, groupOut),
    splits: 1,
    blocks: planBlocks([m, groupOut, size.taps * groupIn, groups], groupIn),
  };
  const planned = planConvolution(attributes, {
    plan,
    kernel: gatherKernel(plan, groupIn % 4 === 0, planPatch(attributes, plan, outImage)),
    m,
    n: groupOut,
    groups,
    channels: groupIn,
    target: outImage,
    source: image,
  });
  return { size, planned };
});

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
  requireTarget("conv2dInputGradient", target);
  const { outGradient, weight, inputGradient } = operands;
  const { size, planned } = inputGradientDecision(attributes, target.hardwareClass);
  requireLengths("conv2dInputGradient", operands, {
    outGradient: size.output,
    weight: size.weight,
    inputGradient: size.input,
  });
  if (planned) launchConvolution(target, planned, [outGradient, weight], inputGradient);
  else target.launch(groupedInputGradient(operands, { attributes, ...size }));
}

const inputGradientDecision = decidedOnce((attributes): Decision => {
  const size = sizeOf("conv2dInputGradient", attributes);
  if (size.groups > 1 && isSmall(size)) return { size, planned: undefined };
  const { groups, groupIn, groupOut, image, outImage } = size;
  const { batch, stride, dilation } = attributes;
  const isQuads = groupOut % 4 === 0;
  const isUnit = stride[0] === 1 && stride[1] === 1;
  const hasPhases = !isUnit && isQuads && dilation[0] === 1 && dilation[1] === 1;
  const phases = hasPhases ? stride : ([1, 1] as const);
  const grid = [Math.ceil(image[0] / phases[0]), Math.ceil(image[1] / phases[1])] as const;
  const m = batch * grid[0] * grid[1];
  const { kernelHeight, kernelWidth } = attributes;
  const slices = groups * phases[0] * phases[1];
  const mostTaps = Math.ceil(kernelHeight / phases[0]) * Math.ceil(kernelWidth / phases[1]);
  const plan = {
    ...planTiles(m, groupIn),
    splits: 1,
    blocks: planBlocks([m, groupIn, mostTaps * groupOut, slices], groupOut),
  };
  const planned = planConvolution(attributes, {
    plan,
    kernel: inputGradientKernel(
      plan,
      isQuads,
      isUnit ? "unit" : hasPhases ? "phases" : "any",
      planTurnedPatch(attributes, plan, outImage),
    ),
    m,
    n: groupIn,
    groups,
    channels: groupOut,
    target: grid,
    source: outImage,
    phases: { counts: phases, image },
  });
  return { size, planned };
});

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
  requireTarget("conv2dWeightGradient", target);
  const { input, outGradient, weightGradient } = operands;
  const { size, planned } = weightGradientDecision(attributes, target.hardwareClass);
  requireLengths("conv2dWeightGradient", operands, {
    input: size.input,
    outGradient: size.output,
    weightGradient: size.weight,
  });
  if (planned) launchConvolution(target, planned, [input, outGradient], weightGradient);
  else groupedWeightGradient(target, operands, { attributes, ...size });
}

const weightGradientDecision = decidedOnce((attributes, hardwareClass): Decision => {
  const size = sizeOf("conv2dWeightGradient", attributes);
  if (size.groups > 1 && isSmall(size)) return { size, planned: undefined };
  const { groups, groupIn, groupOut, image, outImage } = size;
  const { outChannels } = attributes;
  const m = size.weight / Math.max(1, outChannels);
  const pixels = size.output / Math.max(1, outChannels);
  const product = planProduct(m, groupOut, pixels, groups, { hardwareClass });
  const blocks = planBlocks([m, groupOut, pixels, groups * product.splits], groupIn);
  const plan = { ...product, blocks };
  const planned = planConvolution(attributes, {
    plan,
    kernel: weightGradientKernel(plan, groupIn % 4 === 0, planRun(attributes, plan, outImage)),
    m,
    n: groupOut,
    groups,
    channels: groupIn,
    target: outImage,
    source: image,
  });
  return { size, planned };
});

/** Whether groups would leave most of a tile empty. */
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
  const outImage = conv2dOutputSize(attributes);
  return {
    groups,
    groupIn: inChannels / Math.max(1, groups),
    groupOut: outChannels / Math.max(1, groups),
    input: batch * height * width * inChannels,
    weight: (kernelHeight * kernelWidth * inChannels * outChannels) / groups,
    output: batch * outImage[0] * outImage[1] * outChannels,
    taps: kernelHeight * kernelWidth,
    image: [height, width],
    outImage,
  } as const;
}
