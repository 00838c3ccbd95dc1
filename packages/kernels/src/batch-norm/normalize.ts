import type { Binding, Kernel, KernelView, Launch } from "@halfstep/device";
import { requireOneOf, requireWithin } from "../attributes.js";
import { defineWovenKernel } from "../kernel.js";
import { requireLengths } from "../operands.js";
import { byRowWalk, type RowWalk, rowWalk } from "../wgsl/quad-units.js";
import {
  chunkScalars,
  type ElementCode,
  elementPass,
  elementWorkgroups,
} from "../wgsl/row-walk.js";
import type { BatchNormShape } from "./statistics.js";

/** Shape and constants of batch normalisation. */
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
  requireWithin("batchNormNormalize", "eps", eps, 0);
  requireOneOf("batchNormNormalize", "activation", activation, ["none", "relu"]);
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

/** The number of interleaved chunks of rows of an elementwise pass, of about 16 rows each. */
export const elementChunks = (rows: number): number => Math.max(1, Math.ceil(rows / 16));

const normalizeCode: ElementCode = {
  before: ({ own, channel }) => `  let ${own("mean")} = ${channel("mean")};
  let ${own("gain")} = ${channel("weight")} * inverseSqrt(${channel("variance")} + s.eps);
  let ${own("bias")} = ${channel("bias")};
`,
  stored: ({ of, own }) =>
    `activated((${of("input")} - ${own("mean")}) * ${own("gain")} + ${own("bias")})`,
  out: "out",
};

const normalizeKernel = (activation: "none" | "relu", walk: RowWalk): Kernel =>
  defineWovenKernel({
    name: "batchNormNormalize",
    epilogue: "store",
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
    scalars: [...chunkScalars, { name: "eps", type: "f32" }],
    streams: (_, name) => walk === "pairs" && ["input", "out"].includes(name),
    body: (context, _, quads) => `
fn activated(y: vec4f) -> vec4f { return ${activation === "relu" ? "select(y, vec4f(0.0), y <= vec4f(0.0))" : "y"}; }
${elementPass(walk, normalizeCode, context, quads)}`,
    workgroups: (scalars, _, context, quads) => elementWorkgroups(walk, scalars, context, quads),
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

const normalizeKernels = {
  none: byRowWalk((walk) => normalizeKernel("none", walk)),
  relu: byRowWalk((walk) => normalizeKernel("relu", walk)),
};
