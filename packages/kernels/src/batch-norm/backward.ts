import type { Binding, Kernel, KernelView, Launch, LaunchTarget } from "@halfstep/device";
import { requireWithin } from "../attributes.js";
import { defineWovenKernel } from "../kernel.js";
import { requireLengths, requireTarget } from "../operands.js";
import { byRowWalk, type RowWalk, rowWalk } from "../wgsl/quad-units.js";
import {
  chunkScalars,
  type ElementCode,
  elementPass,
  elementWorkgroups,
} from "../wgsl/row-walk.js";
import { type BatchNormGradientAttributes, batchNormGradientSums } from "./gradient-sums.js";
import { elementChunks } from "./normalize.js";

/**
 * Gradients of batch normalisation in training mode, where mean and (biased) variance are those of the input itself.
 *
 * With x̂ = (input - mean) / √(variance + eps): biasGradient = Σ dy, weightGradient = Σ dy·x̂, and
 * inputGradient = weight / √(variance + eps) · (dy - biasGradient / rows - x̂ · weightGradient / rows) (Ioffe and Szegedy 2015).
 * The sums are float32 in a fixed order; keep weightGradient and biasGradient in float32, since inputGradient is computed from them.
 */
export function batchNormBackward<B>(
  target: LaunchTarget<B>,
  operands: InputGradientOperands<B>,
  attributes: BatchNormGradientAttributes,
): void {
  requireTarget("batchNormBackward", target);
  batchNormGradientSums(target, operands, attributes);
  target.launch(batchNormInputGradient(operands, attributes));
}

/** The operands of the input's gradient. */
interface InputGradientOperands<B> {
  readonly input: Binding<B>;
  readonly mean: Binding<B>;
  readonly variance: Binding<B>;
  readonly weight: Binding<B>;
  readonly outGradient: Binding<B>;
  readonly inputGradient: Binding<B>;
  readonly weightGradient: Binding<B>;
  readonly biasGradient: Binding<B>;
}

/**
 * The launch for the input's gradient alone: the formula is that of {@link batchNormBackward}. Where batches of several processes are
 * normalised together, the two sums are means of those of all processes, weighted by their rows.
 */
export function batchNormInputGradient<B>(
  operands: InputGradientOperands<B>,
  attributes: BatchNormGradientAttributes,
): Launch<B> {
  const { rows, channels, eps } = attributes;
  requireWithin("batchNormInputGradient", "eps", eps, 0);
  requireLengths("batchNormInputGradient", operands, {
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
  return {
    kernel: inputKernels[rowWalk(channels)],
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
  };
}

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

const inputCode: ElementCode = {
  before: ({ own, channel }) => `  let ${own("mean")} = ${channel("mean")};
  let ${own("inverse")} = inverseSqrt(${channel("variance")} + s.eps);
  let ${own("gain")} = ${channel("weight")} * ${own("inverse")};
  let ${own("slope")} = ${channel("weightGradient")} * s.perRow * ${own("inverse")};
  let ${own("shift")} = ${channel("biasGradient")} * s.perRow;
`,
  stored: ({ of, own }) =>
    `(${of("outGradient")} - ${own("shift")} - (${of("input")} - ${own("mean")}) * ${own("slope")}) * ${own("gain")}`,
  out: "inputGradient",
};

const inputKernel = (walk: RowWalk): Kernel =>
  defineWovenKernel({
    name: "batchNormInputGradient",
    epilogue: "store",
    variant: walk,
    factors: 8,
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
    scalars: [...chunkScalars, { name: "eps", type: "f32" }, { name: "perRow", type: "f32" }],
    streams: (_, name) =>
      walk === "pairs" && ["input", "outGradient", "inputGradient"].includes(name),
    body: (context, _, quads) => elementPass(walk, inputCode, context, quads),
    workgroups: (scalars, _, context, quads) => elementWorkgroups(walk, scalars, context, quads),
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

const inputKernels = byRowWalk(inputKernel);
