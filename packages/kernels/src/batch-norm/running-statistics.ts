import type { Binding, Kernel, KernelView, Launch } from "@halfstep/device";
import { defineKernel, linearMain, linearWorkgroups } from "../kernel.js";
import { requireLengths } from "../operands.js";
import { type BatchNormShape, requireRows } from "./statistics.js";

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
