import type { Binding, Kernel, KernelView, LaunchTarget } from "@halfstep/device";
import { defineKernel, linearMain, linearWorkgroups } from "../kernel.js";
import { requireLengths } from "../operands.js";
import { scratch } from "../scratch.js";
import { atRow, kept, partialHead, type RowWalk, rowLoop, rowWalk } from "../wgsl/row-walk.js";

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
  const chunks = chunkCount(rows, channels);
  let means = scratch(target, chunks * channels);
  let deviations = scratch(target, chunks * channels);
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
    const groupMeans = scratch(target, mergeSize * channels);
    const groupDeviations = scratch(target, mergeSize * channels);
    merge(mergeSize, groupMeans, groupDeviations, chunks);
    means = groupMeans;
    deviations = groupDeviations;
  }
  merge(1, operands.mean, operands.variance, Math.min(chunks, mergeSize));
}

/** Throws where a channel has too few values for statistics. */
export function requireRows(op: string, rows: number, least: number): void {
  if (rows < least)
    throw new RangeError(
      `${op}: ${rows} values per channel, but statistics need at least ${least}: use a larger batch, or evaluation mode`,
    );
}

const mergeSize = 32;
const invocations = 16_384;

/** Chunks of about 32 rows or more. More than 32 chunks are a multiple of 32, so that they merge in groups of equal size. */
export function chunkCount(rows: number, channels: number): number {
  const chunks = Math.min(Math.ceil(rows / 32), Math.ceil(invocations / Math.ceil(channels / 4)));
  if (chunks <= mergeSize) return Math.max(1, chunks);
  return Math.ceil(chunks / mergeSize) * mergeSize;
}

/** Scalars of every program over [rows, channels] that walks in chunks of rows. */
export const shapeScalars = [
  { name: "rows", type: "u32" },
  { name: "channels", type: "u32" },
  { name: "chunks", type: "u32" },
] as const;

const partialKernel = (walk: RowWalk): Kernel =>
  defineKernel({
    name: "batchNormPartials",
    variant: walk,
    factors: 3,
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
      const { rows, channels, chunks } = scalars as Readonly<
        Record<"rows" | "channels" | "chunks", number>
      >;
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
    const { rows, channels, chunks, groups, scale } = scalars as Readonly<
      Record<"rows" | "channels" | "chunks" | "groups" | "scale", number>
    >;
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
