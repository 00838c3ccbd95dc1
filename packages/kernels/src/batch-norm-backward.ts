import type { Binding, Kernel, KernelView, LaunchTarget } from "@halfstep/device";
import { elementChunks, elementWorkgroups } from "./batch-norm.js";
import { type BatchNormShape, chunkCount, shapeScalars } from "./batch-norm-statistics.js";
import { defineKernel, linearMain, linearWorkgroups } from "./kernel.js";
import { requireLengths } from "./operands.js";
import { reduce } from "./reduce.js";
import {
  atChannel,
  atRow,
  elementPass,
  kept,
  partialHead,
  type RowWalk,
  rowLoop,
  rowWalk,
} from "./wgsl/row-walk.js";

/**
 * Gradients of batch normalisation in training mode, where mean and (biased) variance are those of the input itself.
 *
 * With x̂ = (input - mean) / √(variance + eps): biasGradient = Σ dy, weightGradient = Σ dy·x̂, and
 * inputGradient = weight / √(variance + eps) · (dy - biasGradient / rows - x̂ · weightGradient / rows) (Ioffe and Szegedy 2015).
 * The sums are float32 in a fixed order; keep weightGradient and biasGradient in float32, since inputGradient is computed from them.
 */
export function batchNormBackward<B>(
  target: LaunchTarget<B>,
  operands: {
    readonly input: Binding<B>;
    readonly mean: Binding<B>;
    readonly variance: Binding<B>;
    readonly weight: Binding<B>;
    readonly outGradient: Binding<B>;
    readonly inputGradient: Binding<B>;
    readonly weightGradient: Binding<B>;
    readonly biasGradient: Binding<B>;
  },
  attributes: BatchNormShape & { readonly eps: number },
): void {
  const { rows, channels, eps } = attributes;
  requireLengths("batchNormBackward", operands, {
    input: rows * channels,
    mean: channels,
    variance: channels,
    weight: channels,
    outGradient: rows * channels,
    inputGradient: rows * channels,
    weightGradient: channels,
    biasGradient: channels,
  });
  const { input, mean, variance, weight, outGradient } = operands;
  const { inputGradient, weightGradient, biasGradient } = operands;
  const walk = rowWalk(channels);
  const chunks = Math.min(Math.max(1, rows), chunkCount(rows, channels));
  const partial = (): Binding<B> => {
    const length = chunks * channels;
    return { buffer: target.allocate(length * 4), offset: 0, length, dtype: "float32" };
  };
  const weightPartials = partial();
  const biasPartials = partial();
  target.launch({
    kernel: sumKernels[walk],
    bindings: [input, mean, variance, outGradient, weightPartials, biasPartials],
    scalars: { rows, channels, chunks, eps },
  });
  const sums = { op: "sum", outer: 1, size: chunks, inner: channels } as const;
  reduce(target, { input: weightPartials, out: weightGradient }, sums);
  reduce(target, { input: biasPartials, out: biasGradient }, sums);
  target.launch({
    kernel: inputKernels[walk],
    bindings: [
      input,
      mean,
      variance,
      weight,
      outGradient,
      weightGradient,
      biasGradient,
      inputGradient,
    ],
    scalars: { rows, channels, chunks: elementChunks(rows), eps, perRow: 1 / rows },
  });
}

const backwardScalars = [...shapeScalars, { name: "eps", type: "f32" }] as const;

/** Input, mean, variance, weight, outGradient, weightGradient, biasGradient, inputGradient. */
type Views = readonly [
  KernelView,
  KernelView,
  KernelView,
  KernelView,
  KernelView,
  KernelView,
  KernelView,
  KernelView,
];

const sumKernel = (walk: RowWalk): Kernel =>
  defineKernel({
    name: "batchNormGradientSums",
    variant: walk,
    bindings: [
      { name: "input", access: "read" },
      { name: "mean", access: "read" },
      { name: "variance", access: "read" },
      { name: "outGradient", access: "read" },
      { name: "weightSums", access: "write" },
      { name: "biasSums", access: "write" },
    ],
    scalars: backwardScalars,
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

const inputKernel = (walk: RowWalk): Kernel =>
  defineKernel({
    name: "batchNormInputGradient",
    variant: walk,
    bindings: [
      { name: "input", access: "read" },
      { name: "mean", access: "read" },
      { name: "variance", access: "read" },
      { name: "weight", access: "read" },
      { name: "outGradient", access: "read" },
      { name: "weightGradient", access: "read" },
      { name: "biasGradient", access: "read" },
      { name: "inputGradient", access: "write" },
    ],
    scalars: [...backwardScalars, { name: "perRow", type: "f32" }],
    body: () => `${linearMain()}${elementPass(
      walk,
      `  let mean = ${atChannel(walk, "mean")};
  let inverse = inverseSqrt(${atChannel(walk, "variance")} + s.eps);
  let gain = ${atChannel(walk, "weight")} * inverse;
  let slope = ${atChannel(walk, "weightGradient")} * s.perRow * inverse;
  let shift = ${atChannel(walk, "biasGradient")} * s.perRow;`,
      (load) => `(${load("outGradient")} - shift - (${load("input")} - mean) * slope) * gain`,
      "inputGradient",
    )}}
`,
    workgroups: (scalars) => elementWorkgroups(walk, scalars),
    reference(views, scalars) {
      const { rows, channels, eps, perRow } = scalars as Readonly<
        Record<"rows" | "channels" | "eps" | "perRow", number>
      >;
      const [x, mean, variance, weight, dy, dw, db, dx] = views as Views;
      const inverse = Float64Array.from(variance, (v) => 1 / Math.sqrt(v + eps));
      for (let r = 0, i = 0; r < rows; r++)
        for (let c = 0; c < channels; c++, i++) {
          const centred = (x[i] as number) - (mean[c] as number);
          const slope = (dw[c] as number) * perRow * (inverse[c] as number);
          dx[i] =
            ((dy[i] as number) - (db[c] as number) * perRow - centred * slope) *
            (weight[c] as number) *
            (inverse[c] as number);
        }
    },
  });

const inputKernels: Record<RowWalk, Kernel> = {
  quads: inputKernel("quads"),
  gather: inputKernel("gather"),
};
