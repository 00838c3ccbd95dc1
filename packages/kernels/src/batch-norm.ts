import type { Binding, Kernel, KernelView, Launch } from "@halfstep/device";
import { type BatchNormShape, requireRows, shapeScalars } from "./batch-norm-statistics.js";
import { defineKernel, linearMain, linearWorkgroups } from "./kernel.js";
import { requireLengths } from "./operands.js";
import {
  atChannel,
  elementPass,
  elementWorkgroups,
  type RowWalk,
  rowWalk,
} from "./wgsl/row-walk.js";

export interface BatchNormNormalizeAttributes extends BatchNormShape {
  /** Added to the variance. torch's default is 1e-5. */
  readonly eps: number;
  /** Applied to the result. Default "none". */
  readonly activation?: "none" | "relu";
}

/** out = (input - mean) / √(variance + eps) · weight + bias, over [rows, channels]. */
export function batchNormNormalize<B>(
  operands: {
    readonly input: Binding<B>;
    readonly mean: Binding<B>;
    readonly variance: Binding<B>;
    readonly weight: Binding<B>;
    readonly bias: Binding<B>;
    readonly out: Binding<B>;
  },
  attributes: BatchNormNormalizeAttributes,
): Launch<B> {
  const { rows, channels, eps, activation = "none" } = attributes;
  requireLengths("batchNormNormalize", operands, {
    input: rows * channels,
    mean: channels,
    variance: channels,
    weight: channels,
    bias: channels,
    out: rows * channels,
  });
  const { input, mean, variance, weight, bias, out } = operands;
  return {
    kernel: normalizeKernels[activation][rowWalk(channels)],
    bindings: [input, mean, variance, weight, bias, out],
    scalars: { rows, channels, chunks: elementChunks(rows), eps },
  };
}

/**
 * runningMean and runningVariance (float32) move towards a batch's statistics by `momentum`, in place; the running variance
 * takes the unbiased one, as in torch. A channel whose batch statistics are not finite keeps its running statistics.
 */
export function batchNormUpdateRunning<B>(
  operands: {
    readonly mean: Binding<B>;
    readonly variance: Binding<B>;
    readonly runningMean: Binding<B>;
    readonly runningVariance: Binding<B>;
  },
  attributes: BatchNormShape & { readonly momentum: number },
): Launch<B> {
  const { rows, channels, momentum } = attributes;
  requireLengths("batchNormUpdateRunning", operands, {
    mean: channels,
    variance: channels,
    runningMean: channels,
    runningVariance: channels,
  });
  requireRows("batchNormUpdateRunning", rows, 2);
  const { mean, variance, runningMean, runningVariance } = operands;
  return {
    kernel: updateKernel,
    bindings: [mean, variance, runningMean, runningVariance],
    scalars: { channels, momentum, keep: 1 - momentum, unbias: rows / (rows - 1) },
  };
}

/** In how many interleaved chunks an elementwise pass walks its rows: about 16 each. */
export const elementChunks = (rows: number): number => Math.max(1, Math.ceil(rows / 16));

const normalizeKernel = (activation: "none" | "relu", walk: RowWalk): Kernel =>
  defineKernel({
    name: "batchNormNormalize",
    variant: `${activation},${walk}`,
    factors: 6,
    bindings: [
      { name: "input", access: "read" },
      { name: "mean", access: "read" },
      { name: "variance", access: "read" },
      { name: "weight", access: "read" },
      { name: "bias", access: "read" },
      { name: "out", access: "write" },
    ],
    scalars: [...shapeScalars, { name: "eps", type: "f32" }],
    body: (context) => `
fn activated(y: vec4f) -> vec4f { return ${activation === "relu" ? "select(y, vec4f(0.0), y <= vec4f(0.0))" : "y"}; }
${elementPass(
  walk,
  `  let mean = ${atChannel(walk, "mean")};
  let gain = ${atChannel(walk, "weight")} * inverseSqrt(${atChannel(walk, "variance")} + s.eps);
  let bias = ${atChannel(walk, "bias")};`,
  (load) => `activated((${load("input")} - mean) * gain + bias)`,
  "out",
  context,
)}`,
    workgroups: (scalars, _, context) => elementWorkgroups(walk, scalars, context),
    reference([input, mean, variance, weight, bias, out], scalars) {
      const { rows, channels, eps } = scalars as Readonly<
        Record<"rows" | "channels" | "eps", number>
      >;
      const [x, y] = [input, out] as [KernelView, KernelView];
      const gain = Float64Array.from(
        weight as KernelView,
        (w, c) => w / Math.sqrt((variance?.[c] as number) + eps),
      );
      for (let r = 0, i = 0; r < rows; r++)
        for (let c = 0; c < channels; c++, i++) {
          const value =
            ((x[i] as number) - (mean?.[c] as number)) * (gain[c] as number) +
            (bias?.[c] as number);
          y[i] = activation === "relu" && value <= 0 ? 0 : value;
        }
    },
  });

const normalizeKernels: Record<"none" | "relu", Record<RowWalk, Kernel>> = {
  none: { quads: normalizeKernel("none", "quads"), gather: normalizeKernel("none", "gather") },
  relu: { quads: normalizeKernel("relu", "quads"), gather: normalizeKernel("relu", "gather") },
};

const updateKernel: Kernel = defineKernel({
  name: "batchNormUpdateRunning",
  bindings: [
    { name: "mean", access: "read" },
    { name: "variance", access: "read" },
    { name: "runningMean", access: "readwrite", dtypes: ["float32"] },
    { name: "runningVariance", access: "readwrite", dtypes: ["float32"] },
  ],
  scalars: [
    { name: "channels", type: "u32" },
    { name: "momentum", type: "f32", runtime: true },
    { name: "keep", type: "f32", runtime: true },
    { name: "unbias", type: "f32" },
  ],
  // WGSL may assume that non-finite values do not occur: only their bits tell.
  body: () => `
fn is_finite(v: vec4f) -> vec4<bool> { return (bitcast<vec4u>(v) & vec4u(0x7f800000u)) != vec4u(0x7f800000u); }
${linearMain()}
  if (index * 4u >= s.channels) { return; }
  let mean = load_mean(index);
  let variance = load_variance(index) * s.unbias;
  let usable = is_finite(mean) & is_finite(variance);
  let oldMean = load_runningMean(index);
  let oldVariance = load_runningVariance(index);
  store_runningMean(index, select(oldMean, oldMean * s.keep + mean * s.momentum, usable));
  store_runningVariance(index, select(oldVariance, oldVariance * s.keep + variance * s.momentum, usable));
}
`,
  workgroups: ({ channels }) => linearWorkgroups(Math.ceil((channels as number) / 4)),
  reference([mean, variance, runningMean, runningVariance], scalars) {
    const { channels, momentum, keep, unbias } = scalars as Readonly<
      Record<"channels" | "momentum" | "keep" | "unbias", number>
    >;
    const [m, v] = [runningMean, runningVariance] as [KernelView, KernelView];
    for (let c = 0; c < channels; c++) {
      const [newMean, newVariance] = [mean?.[c] as number, (variance?.[c] as number) * unbias];
      if (!Number.isFinite(newMean) || !Number.isFinite(newVariance)) continue;
      m[c] = (m[c] as number) * keep + newMean * momentum;
      v[c] = (v[c] as number) * keep + newVariance * momentum;
    }
  },
});
