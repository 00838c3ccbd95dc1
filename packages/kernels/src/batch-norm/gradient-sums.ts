import type { Binding, Kernel, KernelView, LaunchTarget } from "@halfstep/device";
import { requireWithin } from "../attributes.js";
import { defineWovenKernel } from "../kernel.js";
import { requireLengths, requireTarget } from "../operands.js";
import { scratch } from "../scratch.js";
import { byRowWalk, type RowWalk, rowWalk } from "../wgsl/quad-units.js";
import {
  chunkCount,
  chunkScalars,
  kept,
  type PartialCode,
  partialProgram,
  partialWorkgroups,
} from "../wgsl/row-walk.js";
import { mergeSums } from "./merge-sums.js";
import type { BatchNormShape } from "./statistics.js";

/** Shape and constants of the gradients of batch normalisation. */
export interface BatchNormGradientAttributes extends BatchNormShape {
  /** Added to the variance, as in the forward pass. */
  readonly eps: number;
}

/**
 * weightGradient[channels] and biasGradient[channels] of `batchNormBackward` alone: sums of chunks of rows, which are then added up in a
 * fixed order.
 */
export function batchNormGradientSums<B>(
  target: LaunchTarget<B>,
  operands: {
    readonly input: Binding<B>;
    readonly mean: Binding<B>;
    readonly variance: Binding<B>;
    readonly outGradient: Binding<B>;
    readonly weightGradient: Binding<B>;
    readonly biasGradient: Binding<B>;
  },
  attributes: BatchNormGradientAttributes,
): void {
  requireTarget("batchNormGradientSums", target);
  const { rows, channels, eps } = attributes;
  requireWithin("batchNormGradientSums", "eps", eps, 0);
  const { input, mean, variance, outGradient, weightGradient, biasGradient } = operands;
  requireLengths(
    "batchNormGradientSums",
    { input, mean, variance, outGradient, weightGradient, biasGradient },
    {
      input: rows * channels,
      mean: channels,
      variance: channels,
      outGradient: rows * channels,
      weightGradient: channels,
      biasGradient: channels,
    },
  );
  const chunks = chunkCount(rows, channels);
  const weightSums = scratch(target, chunks * channels);
  const biasSums = scratch(target, chunks * channels);
  target.launch({
    kernel: sumKernels[rowWalk(channels)],
    bindings: [input, mean, variance, outGradient, weightSums, biasSums],
    scalars: { rows, channels, chunks, eps },
  });
  const results = [
    { sums: weightSums, out: weightGradient },
    { sums: biasSums, out: biasGradient },
  ] as const;
  mergeSums(target, results, { rows, channels, chunks });
}

const sumCode = (walk: RowWalk): PartialCode => ({
  before: ({ own, channel }) => `  let ${own("mean")} = ${channel("mean")};
  var ${own("products")} = vec4f(0.0);
  var ${own("sum")} = vec4f(0.0);
`,
  row: ({ of, own }) => `    let dy = ${kept(walk, of("outGradient"))};
    ${own("sum")} += dy;
    ${own("products")} += ${kept(walk, `dy * (${of("input")} - ${own("mean")})`)};
`,
  after: ({
    own,
    channel,
    partial,
  }) => `  store_weightSums(${partial}, ${own("products")} * inverseSqrt(${channel("variance")} + s.eps));
  store_biasSums(${partial}, ${own("sum")});
`,
});

const sumKernel = (walk: RowWalk): Kernel =>
  defineWovenKernel({
    name: "batchNormGradientSums",
    variant: walk,
    factors: 6,
    bindings: [
      { name: "input", access: "read" },
      { name: "mean", access: "read" },
      { name: "variance", access: "read" },
      { name: "outGradient", access: "read" },
      { name: "weightSums", access: "write" },
      { name: "biasSums", access: "write" },
    ],
    scalars: [...chunkScalars, { name: "eps", type: "f32" }],
    streams: (_, name) => walk === "pairs" && ["input", "outGradient"].includes(name),
    body: (context, _, quads) => partialProgram(walk, sumCode(walk), context, quads),
    workgroups: (scalars, _, context, quads) => partialWorkgroups(scalars, context, quads),
    reference(views, scalars) {
      const { rows, channels, chunks, eps } = scalars as Readonly<
        Record<"rows" | "channels" | "chunks" | "eps", number>
      >;
      const [x, mean, variance, dy] = views as [KernelView, KernelView, KernelView, KernelView];
      const products = new Float64Array(chunks * channels);
      const sums = new Float64Array(chunks * channels);
      for (let r = 0, i = 0; r < rows; r++)
        for (let c = 0, to = (r % chunks) * channels; c < channels; c++, i++, to++) {
          const g = dy[i] as number;
          sums[to] = (sums[to] as number) + g;
          products[to] = (products[to] as number) + g * ((x[i] as number) - (mean[c] as number));
        }
      for (let i = 0; i < products.length; i++)
        products[i] = (products[i] as number) / Math.sqrt((variance[i % channels] as number) + eps);
      views[4]?.set(products);
      views[5]?.set(sums);
    },
  });

const sumKernels = byRowWalk(sumKernel);
