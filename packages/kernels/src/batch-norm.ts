import type { Binding, Kernel, KernelView, Launch, LaunchTarget } from "@halfstep/device";
import { defineKernel, linearMain, linearWorkgroups } from "./kernel.js";
import { requireLengths } from "./operands.js";
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

export interface BatchNormShape {
  /** Batch × height × width: the input is a contiguous [rows, channels]. */
  readonly rows: number;
  readonly channels: number;
}

/**
 * mean[channels] and biased variance[channels] of input[rows, channels], in float32.
 *
 * Chunks of rows are summed about their own first row, then merged by their means and squared deviations (Chan, Golub and
 * LeVeque 1983), so that a mean far from zero costs no digits.
 */
export function batchNormStatistics<B>(
  target: LaunchTarget<B>,
  operands: {
    readonly input: Binding<B>;
    readonly mean: Binding<B>;
    readonly variance: Binding<B>;
  },
  shape: BatchNormShape,
): void {
  const { rows, channels } = shape;
  requireLengths("batchNormStatistics", operands, {
    input: rows * channels,
    mean: channels,
    variance: channels,
  });
  requireRows("batchNormStatistics", rows, 1);
  const scratch = (groups: number): Binding<B> => {
    const length = groups * channels;
    return { buffer: target.allocate(length * 4), offset: 0, length, dtype: "float32" };
  };
  const chunks = chunkCount(rows, channels);
  let means = scratch(chunks);
  let deviations = scratch(chunks);
  target.launch({
    kernel: partialKernels[rowWalk(channels)],
    bindings: [operands.input, means, deviations],
    scalars: { rows, channels, chunks },
  });
  const merge = (groups: number, mean: Binding<B>, deviation: Binding<B>, from: number): void =>
    target.launch({
      kernel: mergeKernel,
      bindings: [means, deviations, mean, deviation],
      scalars: { rows, channels, chunks: from, groups, scale: groups === 1 ? 1 / rows : 1 },
    });
  if (chunks > mergeSize) {
    const groupMeans = scratch(mergeSize);
    const groupDeviations = scratch(mergeSize);
    merge(mergeSize, groupMeans, groupDeviations, chunks);
    means = groupMeans;
    deviations = groupDeviations;
  }
  merge(1, operands.mean, operands.variance, Math.min(chunks, mergeSize));
}

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

function requireRows(op: string, rows: number, least: number): void {
  if (rows < least)
    throw new RangeError(
      `${op}: ${rows} values per channel, but statistics need at least ${least}: use a larger batch, or evaluation mode`,
    );
}

const mergeSize = 32;
const invocations = 16_384;

/** Chunks of at least 32 rows. More than 64 chunks are a multiple of 32, so that they merge in groups of equal size. */
export function chunkCount(rows: number, channels: number): number {
  const chunks = Math.min(Math.ceil(rows / 32), Math.ceil(invocations / Math.ceil(channels / 4)));
  if (chunks <= mergeSize) return Math.max(1, chunks);
  return Math.ceil(chunks / mergeSize) * mergeSize;
}

/** In how many interleaved chunks an elementwise pass walks its rows: about 16 each. */
export const elementChunks = (rows: number): number => Math.max(1, Math.ceil(rows / 16));

/** Workgroups of an {@link elementPass}. */
export const elementWorkgroups = (
  walk: RowWalk,
  { rows, channels, chunks }: Readonly<Record<string, number>>,
): readonly [number, number, number] =>
  linearWorkgroups(
    walk === "quads"
      ? ((chunks as number) * (channels as number)) / 4
      : Math.ceil(((rows as number) * (channels as number)) / 4),
  );

const shapeScalars = [
  { name: "rows", type: "u32" },
  { name: "channels", type: "u32" },
  { name: "chunks", type: "u32" },
] as const;

const partialKernel = (walk: RowWalk): Kernel =>
  defineKernel({
    name: "batchNormPartials",
    variant: walk,
    bindings: [
      { name: "input", access: "read" },
      { name: "mean", access: "write" },
      { name: "deviation", access: "write" },
    ],
    scalars: shapeScalars,
    body: () => `${linearMain()}${partialHead[walk]}
  let origin = ${atRow(walk, "input", "k")};
  var sum = vec4f(0.0);
  var squares = vec4f(0.0);
  ${rowLoop(
    walk,
    `    let d = ${kept(walk, `${atRow(walk, "input", "r")} - origin`)};
    sum += d;
    squares += d * d;
`,
  )}
  let shift = sum / n;
  let deviation = squares - sum * shift;
  store_mean(index, origin + shift);
  store_deviation(index, select(deviation, vec4f(0.0), deviation < vec4f(0.0)));
}
`,
    workgroups: (_, [, partials]) => linearWorkgroups(Math.ceil((partials as number) / 4)),
    reference([input, mean, deviation], scalars) {
      const { rows, channels, chunks } = scalars as {
        rows: number;
        channels: number;
        chunks: number;
      };
      const [x, m, d] = [input, mean, deviation] as [KernelView, KernelView, KernelView];
      const sums = new Float64Array(chunks * channels);
      for (let r = 0, i = 0; r < rows; r++)
        for (let c = 0, to = (r % chunks) * channels; c < channels; c++, i++, to++)
          sums[to] = (sums[to] as number) + (x[i] as number);
      for (let k = 0, i = 0; k < chunks; k++) {
        const n = chunkRows(rows, chunks, k);
        for (let c = 0; c < channels; c++, i++) sums[i] = (sums[i] as number) / n;
      }
      m.set(sums);
      const squares = new Float64Array(chunks * channels);
      for (let r = 0, i = 0; r < rows; r++)
        for (let c = 0, to = (r % chunks) * channels; c < channels; c++, i++, to++)
          squares[to] = (squares[to] as number) + ((x[i] as number) - (sums[to] as number)) ** 2;
      d.set(squares);
    },
  });

const partialKernels: Record<RowWalk, Kernel> = {
  quads: partialKernel("quads"),
  gather: partialKernel("gather"),
};

/** Rows of chunk k: those that are k modulo the number of chunks. */
const chunkRows = (rows: number, chunks: number, k: number): number =>
  Math.floor((rows - 1 - k) / chunks) + 1;

// Group g merges the chunks g, g + groups, …; they are the rows that are g modulo the number of groups.
const mergeKernel: Kernel = defineKernel({
  name: "batchNormMerge",
  bindings: [
    { name: "means", access: "read" },
    { name: "deviations", access: "read" },
    { name: "mean", access: "write" },
    { name: "deviation", access: "write" },
  ],
  scalars: [...shapeScalars, { name: "groups", type: "u32" }, { name: "scale", type: "f32" }],
  body: () => `${linearMain()}
  if (index * 4u >= s.groups * s.channels) { return; }
  let e = vec4u(index * 4u) + vec4u(0u, 1u, 2u, 3u);
  let g = min(e / s.channels, vec4u(s.groups - 1u));
  let c = e % s.channels;
  let origin = ${atRow("gather", "means", "g")};
  let least = vec4f(f32(s.rows / s.chunks));
  let rest = s.rows % s.chunks;
  var total = vec4f(0.0);
  var sum = vec4f(0.0);
  for (var skipped = 0u; skipped < s.chunks; skipped += s.groups) {
    let k = g + skipped;
    let n = select(least, least + 1.0, k < vec4u(rest));
    total += n;
    sum += n * (${atRow("gather", "means", "k")} - origin);
  }
  let shift = sum / total;
  var squares = vec4f(0.0);
  for (var skipped = 0u; skipped < s.chunks; skipped += s.groups) {
    let k = g + skipped;
    let n = select(least, least + 1.0, k < vec4u(rest));
    let d = ${atRow("gather", "means", "k")} - origin - shift;
    squares += ${atRow("gather", "deviations", "k")} + n * d * d;
  }
  store_mean(index, origin + shift);
  store_deviation(index, squares * s.scale);
}
`,
  workgroups: (_, [, , merged]) => linearWorkgroups(Math.ceil((merged as number) / 4)),
  reference([means, deviations, mean, deviation], scalars) {
    const { rows, channels, chunks, groups, scale } = scalars as Record<string, number> & {
      rows: number;
      channels: number;
      chunks: number;
      groups: number;
      scale: number;
    };
    const at = (view: KernelView | undefined, k: number, c: number): number =>
      view?.[k * channels + c] as number;
    for (let g = 0; g < groups; g++)
      for (let c = 0; c < channels; c++) {
        let sum = 0;
        let total = 0;
        for (let k = g; k < chunks; k += groups) {
          total += chunkRows(rows, chunks, k);
          sum += chunkRows(rows, chunks, k) * at(means, k, c);
        }
        let squares = 0;
        for (let k = g; k < chunks; k += groups)
          squares +=
            at(deviations, k, c) +
            chunkRows(rows, chunks, k) * (at(means, k, c) - sum / total) ** 2;
        (mean as KernelView)[g * channels + c] = sum / total;
        (deviation as KernelView)[g * channels + c] = squares * scale;
      }
  },
});

const normalizeKernel = (activation: "none" | "relu", walk: RowWalk): Kernel =>
  defineKernel({
    name: "batchNormNormalize",
    variant: `${activation},${walk}`,
    bindings: [
      { name: "input", access: "read" },
      { name: "mean", access: "read" },
      { name: "variance", access: "read" },
      { name: "weight", access: "read" },
      { name: "bias", access: "read" },
      { name: "out", access: "write" },
    ],
    scalars: [...shapeScalars, { name: "eps", type: "f32" }],
    body: () => `
fn activated(y: vec4f) -> vec4f { return ${activation === "relu" ? "select(y, vec4f(0.0), y <= vec4f(0.0))" : "y"}; }
${linearMain()}${elementPass(
  walk,
  `  let mean = ${atChannel(walk, "mean")};
  let gain = ${atChannel(walk, "weight")} * inverseSqrt(${atChannel(walk, "variance")} + s.eps);
  let bias = ${atChannel(walk, "bias")};`,
  (load) => `activated((${load("input")} - mean) * gain + bias)`,
  "out",
)}}
`,
    workgroups: (scalars) => elementWorkgroups(walk, scalars),
    reference([input, mean, variance, weight, bias, out], scalars) {
      const { rows, channels, eps } = scalars as { rows: number; channels: number; eps: number };
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
    const { channels, momentum, keep, unbias } = scalars as Record<string, number> & {
      channels: number;
      momentum: number;
      keep: number;
      unbias: number;
    };
    const [m, v] = [runningMean, runningVariance] as [KernelView, KernelView];
    for (let c = 0; c < channels; c++) {
      const [newMean, newVariance] = [mean?.[c] as number, (variance?.[c] as number) * unbias];
      if (!Number.isFinite(newMean) || !Number.isFinite(newVariance)) continue;
      m[c] = (m[c] as number) * keep + newMean * momentum;
      v[c] = (v[c] as number) * keep + newVariance * momentum;
    }
  },
});
