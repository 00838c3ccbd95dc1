import type { Kernel, KernelBinding, KernelScalar, KernelView } from "@halfstep/device";
import { defineWovenKernel } from "../kernel.js";
import type { BlockFactors } from "../matmul/block.js";
import { type BlockSize, blockSize } from "../matmul/block-size.js";
import { byEngine } from "../matmul/by-engine.js";
import { groupOf } from "../matmul/copies.js";
import type { ProductPlan } from "../matmul/shape.js";
import type { Contraction } from "../matmul/tile.js";
import { type BackwardStride, type GatherLayout, gatherContraction } from "./gather.js";
import { type CopiedChannels, gatherFactors } from "./gather-factors.js";
import { type Patch, takesPatches } from "./patch.js";
import { forwardReference, inputGradientReference, weightGradientReference } from "./reference.js";
import { weightGradientContraction } from "./weight-gradient.js";
import { weightGradientFactors } from "./weight-gradient-factors.js";

/** The plan of a product, with blocks for devices that multiply by them. */
export interface ConvolutionPlan extends ProductPlan {
  readonly blocks?: ConvolutionBlocks | undefined;
}

interface ConvolutionBlocks extends CopiedChannels {
  readonly size: BlockSize;
}

/** The blocks of a product [m, k] · [k, n] whose left factor is gathered from `channels`. */
export function planBlocks(
  [m, n, k, slices]: readonly [m: number, n: number, k: number, slices: number],
  channels: number,
): ConvolutionBlocks | undefined {
  const size = blockSize(m, n, k, slices);
  return size && { size, channelGroup: groupOf(channels), columnGroup: groupOf(n) };
}

type Reference = (
  views: readonly KernelView[],
  scalars: Readonly<Record<string, number>>,
  width: number,
) => void;

/**
 * Products whose left operand is gathered from images while it is loaded: implicit GEMM.
 *
 * @param patch for windows of 3×3 without strides: the patch that a software adapter computes at a time.
 */
export const gatherKernel = (plan: ConvolutionPlan, isQuads: boolean, patch?: Patch): Kernel =>
  convolutionKernel(
    "conv2d",
    plan,
    `${isQuads ? "c" : ""}${plan.isAligned ? "n" : ""}${patch ? `,${patch.name}` : ""}`,
    () => ({
      bindings: [
        { name: "source", access: "read" },
        { name: "weight", access: "read", unit: plan.width },
      ],
      ...gathered(plan, { direction: "forward", isQuads, isAligned: plan.isAligned }),
      reference: forwardReference,
      patch,
    }),
  );

const gathered = (plan: ConvolutionPlan, layout: GatherLayout) => ({
  contraction: gatherContraction(plan, layout),
  factors: plan.blocks && gatherFactors(plan, layout, plan.blocks),
});

export const inputGradientKernel = (
  plan: ConvolutionPlan,
  isQuads: boolean,
  stride: BackwardStride,
  patch?: Patch,
): Kernel =>
  convolutionKernel(
    "conv2dInputGradient",
    plan,
    `${isQuads ? "c" : ""}${strideMarks[stride]}${patch ? `,${patch.name}` : ""}`,
    () => ({
      bindings: [
        { name: "source", access: "read" },
        { name: "weight", access: "read" },
      ],
      ...gathered(plan, { direction: "backward", isQuads, stride }),
      reference: inputGradientReference,
      patch,
    }),
  );

const strideMarks: Readonly<Record<BackwardStride, string>> = { unit: "1", phases: "p", any: "" };

/** @param patch as in {@link gatherKernel}. */
export const weightGradientKernel = (
  plan: ConvolutionPlan,
  isQuads: boolean,
  patch?: Patch,
): Kernel =>
  convolutionKernel(
    "conv2dWeightGradient",
    plan,
    `${isQuads ? "c" : ""}${plan.isAligned ? "n" : ""}${patch ? `,${patch.name}` : ""}`,
    () => ({
      bindings: [
        { name: "source", access: "read" },
        { name: "gradient", access: "read", unit: plan.width },
      ],
      contraction: weightGradientContraction(plan, { isQuads, isAligned: plan.isAligned }),
      factors: plan.blocks && weightGradientFactors(plan, plan.blocks),
      reference: weightGradientReference,
      patch,
    }),
  );

/**
 * `target` is the image whose pixels are the rows of the product, `source` the one that it gathers from. In the forward pass and
 * for the weight's gradient these are output and input, for the input's gradient input and output. `channels` and `n` are those of
 * one group. Slices are groups: in the weight's gradient each in `splits` parts, in the input's gradient one for each phase, and
 * `target_height` and `target_width` are then the size of a phase.
 */
const scalars: readonly KernelScalar[] = [
  "m",
  "n",
  "columns",
  "slices",
  "groups",
  "splits",
  "phases_y",
  "phases_x",
  "images",
  "target_height",
  "target_width",
  "source_height",
  "source_width",
  "channels",
  "kernel_height",
  "kernel_width",
  "stride_y",
  "stride_x",
  "padding_y",
  "padding_x",
  "dilation_y",
  "dilation_x",
].map((name) => ({ name, type: "u32" }));

/** Each of the three products multiplies every pixel of the target by every element of the weight. */
const operations = (s: Readonly<Record<string, number>>): number => {
  const pixels = (s.images ?? 0) * (s.target_height ?? 0) * (s.target_width ?? 0);
  const taps = (s.kernel_height ?? 0) * (s.kernel_width ?? 0);
  return 2 * pixels * taps * (s.channels ?? 0) * (s.n ?? 0) * (s.groups ?? 1);
};

const kernels = new Map<string, Kernel>();

function convolutionKernel(
  name: string,
  { rows, width, blocks }: ConvolutionPlan,
  layout: string,
  define: () => {
    readonly bindings: readonly KernelBinding[];
    readonly contraction: Contraction;
    readonly factors: BlockFactors | undefined;
    readonly reference: Reference;
    readonly patch: Patch | undefined;
  },
): Kernel {
  const variant = `${rows}x${width},${layout}${blocks ? `,${blocks.size} ${blocks.channelGroup}·${blocks.columnGroup}` : ""}`;
  const key = `${name} ${variant}`;
  let kernel = kernels.get(key);
  if (!kernel) {
    const { bindings, contraction, factors, reference, patch } = define();
    const product = byEngine({
      shape: { rows, width },
      contraction,
      blocks: blocks && factors && { size: blocks.size, factors },
    });
    kernel = defineWovenKernel({
      name,
      variant,
      bindings: [...bindings, { name: "out", access: "write", unit: width }],
      scalars,
      weavesEpilogue: true,
      ...product,
      ...(patch && {
        movesQuads: (context) => (patch.movesQuads ?? false) && takesPatches(context),
        body: (context, woven) =>
          takesPatches(context)
            ? patch.program(context, woven?.epilogue)
            : product.body(context, woven),
        workgroups: (values, lengths, context) =>
          takesPatches(context)
            ? patch.workgroups(values)
            : product.workgroups(values, lengths, context),
      }),
      reference: (views, values) => reference(views, values, width),
      operations,
    });
    kernels.set(key, kernel);
  }
  return kernel;
}
