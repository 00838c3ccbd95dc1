import type { Binding, Kernel, KernelView, LaunchTarget } from "@halfstep/device";
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
import { mergeStatistics, type RunningBindings } from "./merge.js";

/** An input [rows, channels] of batch normalisation. */
export interface BatchNormShape {
  /** Batch × height × width: the input is a contiguous [rows, channels]. */
  readonly rows: number;
  readonly channels: number;
}

/**
 * mean[channels] and biased variance[channels] of input[rows, channels], in float32.
 *
 * Chunks of rows are summed relative to their own first row, then merged by their means and squared deviations (Chan, Golub and
 * LeVeque 1983), so that a mean far from zero loses no digits.
 *
 * The merging launch also moves the `running` statistics, if given, towards the batch's in place, by their momentum; it uses the
 * unbiased variance, as in torch. A channel whose batch statistics are not finite keeps its running statistics.
 *
 * @throws RangeError without rows, and with one row and running statistics
 */
export function batchNormStatistics<B>(
  target: LaunchTarget<B>,
  operands: {
    readonly input: Binding<B>;
    readonly mean: Binding<B>;
    readonly variance: Binding<B>;
    readonly running?: RunningBindings<B> | undefined;
  },
  shape: BatchNormShape,
): void {
  requireTarget("batchNormStatistics", target);
  const { rows, channels } = shape;
  const { input, mean, variance, running } = operands;
  requireLengths(
    "batchNormStatistics",
    { input, mean, variance, runningMean: running?.mean, runningVariance: running?.variance },
    {
      input: rows * channels,
      mean: channels,
      variance: channels,
      runningMean: channels,
      runningVariance: channels,
    },
  );
  const least = running ? 2 : 1;
  if (rows < least)
    throw new RangeError(
      `batchNormStatistics: ${rows} values per channel, but statistics need at least ${least}: use a larger batch, or evaluation mode`,
    );
  const chunks = chunkCount(rows, channels);
  const means = scratch(target, chunks * channels);
  const deviations = scratch(target, chunks * channels);
  target.launch({
    kernel: partialKernels[rowWalk(channels)],
    bindings: [input, means, deviations],
    scalars: { rows, channels, chunks },
  });
  mergeStatistics(
    target,
    { means, deviations, mean, variance, running },
    { rows, channels, chunks },
  );
}

const partialCode = (walk: RowWalk): PartialCode => ({
  before: ({ of, own }) => `  let ${own("origin")} = ${of("input")};
  var ${own("sum")} = vec4f(0.0);
  var ${own("squares")} = vec4f(0.0);
`,
  row: ({ of, own }) => `    let d = ${kept(walk, `${of("input")} - ${own("origin")}`)};
    ${own("sum")} += d;
    ${own("squares")} += d * d;
`,
  after: ({ own, partial }) => `  let ${own("shift")} = ${own("sum")} / n;
  let ${own("deviation")} = ${own("squares")} - ${own("sum")} * ${own("shift")};
  store_mean(${partial}, ${own("origin")} + ${own("shift")});
  store_deviation(${partial}, select(${own("deviation")}, vec4f(0.0), ${own("deviation")} < vec4f(0.0)));
`,
});

const partialKernel = (walk: RowWalk): Kernel =>
  defineWovenKernel({
    name: "batchNormPartials",
    variant: walk,
    factors: 3,
    bindings: [
      { name: "input", access: "read" },
      { name: "mean", access: "write" },
      { name: "deviation", access: "write" },
    ],
    scalars: chunkScalars,
    streams: (_, name) => walk === "pairs" && name === "input",
    body: (context, _, quads) => partialProgram(walk, partialCode(walk), context, quads),
    workgroups: (scalars, _, context, quads) => partialWorkgroups(scalars, context, quads),
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

const partialKernels = byRowWalk(partialKernel);

/** Number of rows of chunk k: the rows that are k modulo the number of chunks. */
const chunkRows = (rows: number, chunks: number, k: number): number =>
  Math.floor((rows - 1 - k) / chunks) + 1;
