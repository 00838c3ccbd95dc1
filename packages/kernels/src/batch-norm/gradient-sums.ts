import type { Binding, Kernel, KernelView, LaunchTarget } from "@halfstep/device";
import { defineKernel, linearMain, linearWorkgroups } from "../kernel.js";
import { scratch } from "../scratch.js";
import {
  atChannel,
  atRow,
  kept,
  partialHead,
  type RowWalk,
  rowLoop,
  rowWalk,
} from "../wgsl/row-walk.js";
import { type BatchNormShape, chunkCount, shapeScalars } from "./statistics.js";

/** weightGradient and biasGradient of `batchNormBackward`: sums of chunks of rows, which are then added up in a fixed order. */
export function gradientSums<B>(
  target: LaunchTarget<B>,
  operands: {
    readonly input: Binding<B>;
    readonly mean: Binding<B>;
    readonly variance: Binding<B>;
    readonly outGradient: Binding<B>;
    readonly weightGradient: Binding<B>;
    readonly biasGradient: Binding<B>;
  },
  { rows, channels, eps }: BatchNormShape & { readonly eps: number },
): void {
  const { input, mean, variance, outGradient, weightGradient, biasGradient } = operands;
  const chunks = Math.min(Math.max(1, rows), chunkCount(rows, channels));
  const weightSums = scratch(target, chunks * channels);
  const biasSums = scratch(target, chunks * channels);
  target.launch({
    kernel: sumKernels[rowWalk(channels)],
    bindings: [input, mean, variance, outGradient, weightSums, biasSums],
    scalars: { rows, channels, chunks, eps },
  });
  mergeSums(target, { weightSums, biasSums, weightGradient, biasGradient }, { chunks, channels });
}

const sumKernel = (walk: RowWalk): Kernel =>
  defineKernel({
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
    scalars: [...shapeScalars, { name: "eps", type: "f32" }],
    body: () => `${linearMain()}${partialHead[walk]}
  let mean = ${atChannel(walk, "mean")};
  var products = vec4f(0.0);
  var sum = vec4f(0.0);
  ${rowLoop(
    walk,
    `    let dy = ${kept(walk, atRow(walk, "outGradient", "r"))};
    sum += dy;
    products += ${kept(walk, `dy * (${atRow(walk, "input", "r")} - mean)`)};
`,
  )}
  store_weightSums(index, products * inverseSqrt(${atChannel(walk, "variance")} + s.eps));
  store_biasSums(index, sum);
}
`,
    workgroups: (_, lengths) => linearWorkgroups(Math.ceil((lengths[4] as number) / 4)),
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

const sumKernels: Record<RowWalk, Kernel> = {
  quads: sumKernel("quads"),
  gather: sumKernel("gather"),
};

/** Chunks that one launch adds up; more are added in groups of as many first. */
const mergedAtOnce = 64;

/** The sums of both partial sums over their chunks, in a fixed order. */
function mergeSums<B>(
  target: LaunchTarget<B>,
  operands: {
    readonly weightSums: Binding<B>;
    readonly biasSums: Binding<B>;
    readonly weightGradient: Binding<B>;
    readonly biasGradient: Binding<B>;
  },
  { chunks, channels }: { readonly chunks: number; readonly channels: number },
): void {
  let { weightSums, biasSums } = operands;
  let size = chunks;
  const merge = (weights: Binding<B>, biases: Binding<B>, groups: number): void =>
    target.launch({
      kernel: mergeKernel,
      bindings: [weightSums, biasSums, weights, biases],
      scalars: { channels, chunks: size, groups },
    });
  if (size > mergedAtOnce) {
    const groups = Math.ceil(size / mergedAtOnce);
    const weights = scratch(target, groups * channels);
    const biases = scratch(target, groups * channels);
    merge(weights, biases, groups);
    weightSums = weights;
    biasSums = biases;
    size = groups;
  }
  merge(operands.weightGradient, operands.biasGradient, 1);
}

/** Group g of the result is the sum of the chunks g, g + groups, … of either operand. */
const mergeKernel: Kernel = defineKernel({
  name: "batchNormGradientMerge",
  factors: 4,
  bindings: [
    { name: "weightSums", access: "read" },
    { name: "biasSums", access: "read" },
    { name: "weights", access: "write" },
    { name: "biases", access: "write" },
  ],
  scalars: [
    { name: "channels", type: "u32" },
    { name: "chunks", type: "u32" },
    { name: "groups", type: "u32" },
  ],
  body: () => `${linearMain()}
  if (index * 4u >= s.groups * s.channels) { return; }
  var weight = vec4f();
  var bias = vec4f();
  if (((s.groups * s.channels) & 3u) == 0u) {
    let quads = s.groups * s.channels / 4u;
    let all = s.chunks * s.channels / 4u;
    for (var q = index; q < all; q += quads) {
      weight += load_weightSums(q);
      bias += load_biasSums(q);
    }
  } else {
    let all = s.chunks * s.channels;
    for (var e = 0u; e < 4u; e++) {
      for (var i = index * 4u + e; i < all; i += s.groups * s.channels) {
        weight[e] += at_weightSums(i);
        bias[e] += at_biasSums(i);
      }
    }
  }
  store_weights(index, weight);
  store_biases(index, bias);
}
`,
  workgroups: (_, [, , merged]) => linearWorkgroups(Math.ceil((merged as number) / 4)),
  reference([weightSums, biasSums, weights, biases], scalars) {
    const { channels, chunks, groups } = scalars as Readonly<
      Record<"channels" | "chunks" | "groups", number>
    >;
    const [inputs, outputs] = [
      [weightSums, biasSums] as [KernelView, KernelView],
      [weights, biases] as [KernelView, KernelView],
    ];
    const stride = groups * channels;
    for (const [n, input] of inputs.entries())
      for (let i = 0; i < stride; i++) {
        let sum = 0;
        for (let at = i; at < chunks * channels; at += stride) sum += input[at] as number;
        (outputs[n] as KernelView)[i] = sum;
      }
  },
});
