import type { Binding, Kernel, KernelView, LaunchTarget } from "@halfstep/device";
import { requireWithin } from "../attributes.js";
import { defineWovenKernel } from "../kernel.js";
import { requireLengths, requireTarget } from "../operands.js";
import type { KeptUnit } from "../wgsl/kept-row.js";
import { eachQuad, loadingUnit, type UnitQuads } from "../wgsl/quad-units.js";
import type { Team } from "../wgsl/team.js";
import { normNormalize } from "./normalize.js";
import {
  byOwner,
  isInPairs,
  ownerVariant,
  quadLoop,
  type RowsCode,
  rowOwner,
  rowsProgram,
  rowsUseSubgroups,
  rowsWorkgroups,
  withParameters,
} from "./row-owner.js";
import { type NormShape, type NormStatistics, present, presentBindings } from "./shape.js";
import { normStatistics } from "./statistics.js";

/**
 * Group, layer and RMS norm: out = (input − mean) · rstd · weight + bias, with mean and rstd of each group, and parameters [groups ·
 * width]; absent operands are left out. Statistics are float32, relative to each group's own mean, by partial sums that are merged by their
 * means and squared deviations (Chan, Golub and LeVeque 1983). Without `mean`, rstd is that of RMS norm.
 *
 * Layer and RMS norm of rows in whole quads take one launch. On GPUs registers hold a row of usual width, in which mean and squares are
 * summed one after the other.
 */
export function norm<B>(
  target: LaunchTarget<B>,
  operands: {
    readonly input: Binding<B>;
    readonly weight?: Binding<B> | undefined;
    readonly bias?: Binding<B> | undefined;
    readonly out: Binding<B>;
  } & NormStatistics<B>,
  attributes: NormShape & { readonly eps: number },
): void {
  requireTarget("norm", target);
  const { eps, ...shape } = attributes;
  requireWithin("norm", "eps", eps, 0);
  const { input, mean, rstd, weight, bias, out } = operands;
  const owner = rowOwner(shape);
  const { batch, width } = shape;
  if (!owner || width === 0) {
    normStatistics(target, operands, attributes);
    target.launch(normNormalize(operands, shape));
    return;
  }
  requireLengths("norm", operands, {
    input: batch * width,
    mean: batch,
    rstd: batch,
    weight: width,
    bias: width,
    out: batch * width,
  });
  target.launch({
    kernel: rowsKernel(owner, {
      ...{ mean: !!mean, weight: !!weight, bias: !!bias },
      pairs: isInPairs(width),
    }),
    bindings: presentBindings([input, mean, rstd, weight, bias, out]),
    scalars: { batch, width, eps, scale: 1 / width },
  });
}

interface Parts {
  readonly mean: boolean;
  readonly weight: boolean;
  readonly bias: boolean;
  readonly pairs: boolean;
}

/** Quads in a block of {@link centredStatistics}. */
const blockQuads = 16;

/** WGSL: `origin`, the median of three elements of the vector `first`. */
const originOfFirst =
  "let origin = max(min(first.x, first.y), min(max(first.x, first.y), first.z));";

/**
 * One pass. A block is summed relative to the mean of the elements before it, and the first block relative to the median of three elements,
 * which a single outlier does not move. So little precision is lost when the square of its mean is subtracted. Each of the four lanes of a
 * quad has its own mean until the end.
 */
function centredStatistics(total: (value: string) => string, quads: UnitQuads): string {
  const block = blockQuads / quads;
  return `  let first = load_input(base)${quads === 1 ? "" : "[0]"};
  ${originOfFirst}
  var own_mean = vec4f(origin);
  var own_squares = vec4f();
  var seen = 0.0;
  for (var start = lane; start < steps; start += ${block}u * lanes) {
    let stop = min(start + ${block}u * lanes, steps);
    var block_sum = vec4f();
    var block_squares = vec4f();
    for (var c = start; c < stop; c += lanes) {
${loadingUnit(
  quads,
  "c",
  (x) => `load_${x}(base + c)`,
  (unit) =>
    eachQuad(
      unit,
      ({ of }) => `      let d = ${of("input")} - own_mean;
      block_sum += d;
      block_squares += d * d;
`,
    ),
)}    }
    let n = f32((stop - start + lanes - 1u) / lanes${quads === 1 ? "" : " * 2u"});
    let shift = block_sum / n;
    let share = n / (seen + n);
    own_squares += (block_squares - block_sum * shift) + shift * shift * (seen * share);
    own_mean += shift * share;
    seen += n;
  }
  let apart = seen * (own_mean - origin);
  let mean = origin + ${total("apart")} * s.scale;
  let off = own_mean - mean;
  own_squares += seen * off * off;
`;
}

const plainStatistics = (quads: UnitQuads): string => `  var own_squares = vec4f();
  ${quadLoop(
    loadingUnit(
      quads,
      "c",
      (x) => `load_${x}(base + c)`,
      (unit) =>
        eachQuad(
          unit,
          ({ of }) => `    let x = ${of("input")};
    own_squares += x * x;
`,
        ),
    ),
  )}`;

/**
 * The statistics of a row in registers: its sum relative to the median of three elements of a quad, and then its squares relative to the
 * mean.
 */
function keptStatistics(units: readonly KeptUnit[], whole: Team, hasMean: boolean): string {
  const inside = (x: (input: string) => string): readonly string[] =>
    units.flatMap((unit) =>
      unit.quads.map(({ of }) => `select(vec4f(), ${x(of("input"))}, ${unit.inside})`),
    );
  const mean = `    let first = ${whole.first(units[0]?.quads[0]?.of("input") ?? "")};
    ${originOfFirst}
    var own_sum = vec4f();
${inside((x) => `${x} - origin`)
  .map((d) => `    own_sum += ${d};\n`)
  .join("")}    let mean = origin + ${whole.total("own_sum")} * s.scale;
`;
  return `${hasMean ? mean : ""}    var own_squares = vec4f();
${inside((x) => (hasMean ? `${x} - mean` : x))
  .map((d) => `    { let d = ${d}; own_squares += d * d; }\n`)
  .join("")}`;
}

const rowsKernel = byOwner<Parts, Kernel>((owner, parts) => {
  const { mean, weight, bias, pairs } = parts;
  const rstdOf = (
    total: (value: string) => string,
  ): string => `  let rstd = inverseSqrt(${total("own_squares")} * s.scale + s.eps);
  if (lane == 0u) {
${mean ? "    store_mean(row, mean);\n" : ""}    store_rstd(row, rstd);
  }
`;
  const numbers = `vec4f(${mean ? "mean" : "0.0"}, rstd, 0.0, 0.0);\n`;
  const code: RowsCode = {
    numbers: (total, quads) =>
      `${mean ? centredStatistics(total, quads) : plainStatistics(quads)}${rstdOf(total)}  return ${numbers}`,
    parameters: (c) =>
      `${weight ? `    let gain = load_weight(${c});\n` : ""}${bias ? `    let bias = load_bias(${c});\n` : ""}`,
    stored: ({ of }) => ({
      before: `      let centred = ${of("input")}${mean ? " - numbers.x" : ""};
      let scaled = centred * numbers.y${weight ? " * gain" : ""};
      `,
      value: `scaled${bias ? " + bias" : ""}`,
    }),
    kept: (units, whole) => ({
      numbers: `${keptStatistics(units, whole, mean)}${rstdOf(whole.total)}  let numbers = ${numbers}`,
      stored: withParameters(code),
    }),
    out: "out",
  };
  return defineWovenKernel({
    name: "norm",
    epilogue: "store",
    factors: 8,
    variant: ownerVariant(owner, parts),
    bindings: present([
      { name: "input", access: "read" },
      mean && { name: "mean", access: "write", unit: 1, dtypes: ["float32"] },
      { name: "rstd", access: "write", unit: 1, dtypes: ["float32"] },
      weight && { name: "weight", access: "read" },
      bias && { name: "bias", access: "read" },
      { name: "out", access: "write" },
    ]),
    scalars: [
      { name: "batch", type: "u32" },
      { name: "width", type: "u32" },
      { name: "eps", type: "f32" },
      { name: "scale", type: "f32" },
    ],
    streams: (_, name) => pairs && ["input", "out"].includes(name),
    body: (context, _, quads) => rowsProgram(owner, code, context, quads),
    subgroups: (context) => rowsUseSubgroups(owner, context),
    workgroups: ({ batch }, _, context) => rowsWorkgroups(owner, batch as number, context),
    reference(views, scalars) {
      const { batch, width, eps } = scalars as Readonly<Record<"batch" | "width" | "eps", number>>;
      const rest = [...views];
      const x = rest.shift() as KernelView;
      const means = mean ? rest.shift() : undefined;
      const rstds = rest.shift() as KernelView;
      const gain = weight ? rest.shift() : undefined;
      const shift = bias ? rest.shift() : undefined;
      const out = rest.shift() as KernelView;
      for (let row = 0; row < batch; row++) {
        const values = x.subarray(row * width, (row + 1) * width);
        let total = 0;
        if (means) for (const value of values) total += value;
        const centre = total / width;
        let squares = 0;
        for (const value of values) squares += (value - centre) ** 2;
        if (means) means[row] = centre;
        rstds[row] = 1 / Math.sqrt(squares / width + eps);
        // The statistics as stored, because a backward pass reads these.
        const [mid, inverse] = [means ? (means[row] as number) : 0, rstds[row] as number];
        for (let c = 0; c < width; c++) {
          const scaled = ((values[c] as number) - mid) * inverse;
          out[row * width + c] =
            scaled * (gain ? (gain[c] as number) : 1) + (shift ? (shift[c] as number) : 0);
        }
      }
    },
  });
});
