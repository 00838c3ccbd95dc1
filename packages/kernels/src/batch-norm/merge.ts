import type { Binding, Kernel, KernelView, LaunchTarget } from "@halfstep/device";
import { defineKernel } from "../kernel.js";
import {
  atChunk,
  chunkLoads,
  joined,
  type MergeOwner,
  mergeLoop,
  mergeOwner,
  mergeProgram,
  mergeUsesSubgroups,
  mergeWorkgroups,
} from "../wgsl/chunk-merge.js";
import { chunkScalars } from "../wgsl/row-walk.js";

/** Running statistics of a batch norm, float32 [channels]. */
export interface RunningBindings<B> {
  readonly mean: Binding<B>;
  readonly variance: Binding<B>;
  /** The weight of this batch. */
  readonly momentum: number;
}

/** Merges the partials of `batchNormStatistics` to mean and biased variance, and moves the running statistics by them. */
export function mergeStatistics<B>(
  target: LaunchTarget<B>,
  operands: {
    readonly means: Binding<B>;
    readonly deviations: Binding<B>;
    readonly mean: Binding<B>;
    readonly variance: Binding<B>;
    readonly running: RunningBindings<B> | undefined;
  },
  shape: { readonly rows: number; readonly channels: number; readonly chunks: number },
): void {
  const { means, deviations, mean, variance, running } = operands;
  const { rows, channels, chunks } = shape;
  const scale = 1 / rows;
  const kernels = mergeKernels[mergeOwner(chunks)];
  if (!running) {
    target.launch({
      kernel: kernels.alone,
      bindings: [means, deviations, mean, variance],
      scalars: { rows, channels, chunks, scale },
    });
    return;
  }
  const { momentum } = running;
  target.launch({
    kernel: kernels.running,
    bindings: [means, deviations, mean, variance, running.mean, running.variance],
    scalars: {
      rows,
      channels,
      chunks,
      scale,
      momentum,
      keep: 1 - momentum,
      unbias: rows / (rows - 1),
    },
  });
}

type Numbers = Readonly<
  Record<"rows" | "channels" | "chunks" | "scale" | "momentum" | "keep" | "unbias", number>
>;

const mergeKernel = (owner: MergeOwner, movesRunning: boolean): Kernel =>
  defineKernel({
    name: "batchNormMerge",
    variant: `${owner}${movesRunning ? ",running" : ""}`,
    bindings: [
      { name: "means", access: "read", dtypes: ["float32"] },
      { name: "deviations", access: "read", dtypes: ["float32"] },
      { name: "mean", access: "write", dtypes: ["float32"] },
      { name: "variance", access: "write", dtypes: ["float32"] },
      ...(movesRunning
        ? ([
            { name: "runningMean", access: "readwrite", dtypes: ["float32"] },
            { name: "runningVariance", access: "readwrite", dtypes: ["float32"] },
          ] as const)
        : []),
    ],
    scalars: [
      ...chunkScalars,
      { name: "scale", type: "f32" },
      ...(movesRunning
        ? ([
            { name: "momentum", type: "f32", runtime: true },
            { name: "keep", type: "f32", runtime: true },
            { name: "unbias", type: "f32" },
          ] as const)
        : []),
    ],
    // Means relative to the first chunk's mean, and squares relative to the total mean, as in Chan, Golub and LeVeque
    // (1983).
    body: (context) =>
      `${chunkLoads(["means", "deviations"])}
fn is_finite(v: vec4f) -> vec4<bool> { return (bitcast<vec4u>(v) & vec4u(0x7f800000u)) != vec4u(0x7f800000u); }
${mergeProgram(
  owner,
  `  let origin = ${atChunk("means", "0u")};
  var sum = vec4f();
  ${mergeLoop(`    sum += chunk_rows(vec4u(k)) * (${atChunk("means", "k")} - origin);\n`)}
  let shift = ${joined(owner, "sum", context)} * s.scale;
  var squares = vec4f();
  var wrong = vec4f();
  ${mergeLoop(`    let m = ${atChunk("means", "k")};
    let deviation = ${atChunk("deviations", "k")};
    let d = m - origin - shift;
    squares += deviation + chunk_rows(vec4u(k)) * d * d;
${movesRunning ? "    wrong += select(vec4f(1.0), vec4f(), is_finite(m) & is_finite(deviation));\n" : ""}`)}
  let mean = origin + shift;
  let variance = ${joined(owner, "squares", context)} * s.scale;
${movesRunning ? `  let wrong_chunks = ${joined(owner, "wrong", context)};\n` : ""}  if (lane != 0u) { return; }
  store_mean(index, mean);
  store_variance(index, variance);
${movesRunning ? moveRunning : ""}`,
  context,
)}`,
    subgroups: (context) => mergeUsesSubgroups(owner, context),
    workgroups: ({ channels }, _, context) => mergeWorkgroups(owner, channels as number, context),
    reference([means, deviations, mean, variance, runningMean, runningVariance], scalars) {
      const { rows, channels, chunks, scale, momentum, keep, unbias } = scalars as Numbers;
      const [m, v] = [mean, variance] as [KernelView, KernelView];
      for (let c = 0; c < channels; c++) {
        const at = (view: KernelView | undefined, k: number): number =>
          view?.[k * channels + c] as number;
        const size = (k: number): number => Math.floor((rows - 1 - k) / chunks) + 1;
        let sum = 0;
        for (let k = 0; k < chunks; k++) sum += size(k) * at(means, k);
        const centre = sum / rows;
        let squares = 0;
        for (let k = 0; k < chunks; k++)
          squares += at(deviations, k) + size(k) * (at(means, k) - centre) ** 2;
        m[c] = centre;
        v[c] = squares * scale;
        if (!runningMean || !runningVariance) continue;
        const [batchMean, batchVariance] = [m[c] as number, (v[c] as number) * unbias];
        if (!Number.isFinite(batchMean) || !Number.isFinite(batchVariance)) continue;
        runningMean[c] = (runningMean[c] as number) * keep + batchMean * momentum;
        runningVariance[c] = (runningVariance[c] as number) * keep + batchVariance * momentum;
      }
    },
  });

// WGSL may assume that non-finite values do not occur, so the bits of the partials in memory are tested.
const moveRunning = /* wgsl */ `  let unbiased = variance * s.unbias;
  let usable = (wrong_chunks == vec4f()) & is_finite(mean) & is_finite(unbiased);
  let oldMean = load_runningMean(index);
  let oldVariance = load_runningVariance(index);
  store_runningMean(index, select(oldMean, oldMean * s.keep + mean * s.momentum, usable));
  store_runningVariance(index, select(oldVariance, oldVariance * s.keep + unbiased * s.momentum, usable));
`;

const kernelsOf = (owner: MergeOwner) => ({
  alone: mergeKernel(owner, false),
  running: mergeKernel(owner, true),
});

const mergeKernels: Record<MergeOwner, ReturnType<typeof kernelsOf>> = {
  invocation: kernelsOf("invocation"),
  workgroup: kernelsOf("workgroup"),
};
