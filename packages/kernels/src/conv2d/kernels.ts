import type { Kernel, KernelBinding, KernelScalar, KernelView } from "@halfstep/device";
import { defineWovenKernel } from "../kernel.js";
import type { TilePlan } from "../matmul/shape.js";
import { type Contraction, type TileShape, tileProgram, tileWorkgroups } from "../matmul/tile.js";
import { type BackwardStride, gatherContraction } from "./gather.js";
import { type Patch, takesPatches } from "./patch.js";
import { forwardReference, inputGradientReference, weightGradientReference } from "./reference.js";
import { weightGradientContraction } from "./weight-gradient.js";

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
export const gatherKernel = (plan: TilePlan, isQuads: boolean, patch?: Patch): Kernel =>
  convolutionKernel(
    "conv2d",
    plan,
    `${isQuads ? "c" : ""}${plan.isAligned ? "n" : ""}${patch ? `,${patch.name}` : ""}`,
    () => ({
      bindings: [
        { name: "source", access: "read" },
        { name: "weight", access: "read", unit: plan.width },
      ],
      contraction: gatherContraction(plan, {
        direction: "forward",
        isQuads,
        isAligned: plan.isAligned,
      }),
      reference: forwardReference,
      ...(patch && { patch }),
    }),
  );

export const inputGradientKernel = (
  plan: TilePlan,
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
      contraction: gatherContraction(plan, { direction: "backward", isQuads, stride }),
      reference: inputGradientReference,
      ...(patch && { patch }),
    }),
  );

const strideMarks: Readonly<Record<BackwardStride, string>> = { unit: "1", phases: "p", any: "" };

/** @param patch as in {@link gatherKernel}. */
export const weightGradientKernel = (plan: TilePlan, isQuads: boolean, patch?: Patch): Kernel =>
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
      reference: weightGradientReference,
      ...(patch && { patch }),
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
  { rows, width }: TileShape,
  layout: string,
  define: () => {
    readonly bindings: readonly KernelBinding[];
    readonly contraction: Contraction;
    readonly reference: Reference;
    readonly patch?: Patch;
  },
): Kernel {
  const variant = `${rows}x${width},${layout}`;
  const key = `${name} ${variant}`;
  let kernel = kernels.get(key);
  if (!kernel) {
    const { bindings, contraction, reference, patch } = define();
    kernel = defineWovenKernel({
      name,
      variant,
      bindings: [...bindings, { name: "out", access: "write", unit: width }],
      scalars,
      weavesEpilogue: true,
      subgroups: ({ subgroupSize }) => subgroupSize > 0,
      movesQuads: (context) => (patch?.movesQuads ?? false) && takesPatches(context),
      body: (context, woven) =>
        patch && takesPatches(context)
          ? patch.program(context, woven?.epilogue)
          : tileProgram({ rows, width }, contraction, context, woven?.epilogue),
      workgroups: (values, _, context) =>
        patch && takesPatches(context)
          ? patch.workgroups(values)
          : tileWorkgroups({ rows, width }, values, context),
      reference: (views, values) => reference(views, values, width),
      operations,
    });
    kernels.set(key, kernel);
  }
  return kernel;
}
