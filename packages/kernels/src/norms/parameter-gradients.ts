import type { Binding, Kernel, KernelView, LaunchTarget } from "@halfstep/device";
import { mergeSums } from "../batch-norm/merge-sums.js";
import { defineWovenKernel } from "../kernel.js";
import { scratch } from "../scratch.js";
import { rowWalk } from "../wgsl/quad-units.js";
import {
  type ChannelQuad,
  chunkCount,
  kept,
  type PartialCode,
  partialProgram,
  partialWorkgroups,
} from "../wgsl/row-walk.js";
import { forEachElement } from "./normalize.js";
import { rowOwner } from "./row-owner.js";
import {
  byVariant,
  type NormParts,
  type NormShape,
  type NormStatistics,
  normWalk,
  present,
  presentBindings,
  shapeScalars,
  statistic,
  variantOf,
} from "./shape.js";

/** weightGradient and biasGradient as in `normBackward`, if given: partial sums by chunks of rows, then their sum. */
export function normParameterGradients<B>(
  target: LaunchTarget<B>,
  operands: {
    readonly input: Binding<B>;
    readonly outGradient: Binding<B>;
    readonly weightGradient?: Binding<B> | undefined;
    readonly biasGradient?: Binding<B> | undefined;
  } & NormStatistics<B>,
  shape: NormShape,
): void {
  const { batch, pixels, groups, width } = shape;
  const { input, mean, rstd, outGradient, weightGradient, biasGradient } = operands;
  const rows = batch * pixels;
  const channels = groups * width;
  const chunks = chunkCount(rows, channels);
  const partial = (out: Binding<B> | undefined) =>
    out && { sums: scratch(target, chunks * channels), out };
  const [weight, bias] = [partial(weightGradient), partial(biasGradient)];
  const [first, second] = weight ? [weight, bias] : [bias];
  if (!first) return;
  const parts = { mean: !!mean, weight: !!weight, bias: !!bias };
  // A bias alone needs no statistics, but is too rare for a separate program.
  target.launch({
    kernel: sumKernel(sumWalk(shape), parts),
    bindings: presentBindings([input, mean, rstd, outGradient, weight?.sums, bias?.sums]),
    scalars: { batch, pixels, groups, width, rows, channels, chunks },
  });
  mergeSums(target, [first, second], { rows, channels, chunks });
}

/**
 * How the sums walk over [rows, channels], and where the statistics of an element are: at its row, where "rows" are groups, or at its
 * group.
 */
type SumWalk = "pairs of rows" | "rows" | "pairs" | "quads" | "lanes";

function sumWalk(shape: NormShape): SumWalk {
  if (normWalk(shape) === "lanes") return "lanes";
  const isInPairs = rowWalk(shape.groups * shape.width) === "pairs";
  if (rowOwner(shape)) return isInPairs ? "pairs of rows" : "rows";
  return isInPairs ? "pairs" : "quads";
}

function sumCode(walk: SumWalk, { mean, weight, bias }: NormParts): PartialCode {
  const isLanes = walk === "lanes";
  const rows = isLanes ? "gather" : "quads";
  const at = (name: string): string => statistic(isLanes ? "lanes" : "quads", name, "place");
  const placeOf = ({ index }: ChannelQuad): string => {
    if (isLanes) return "min(r, vec4u(s.rows - 1u)) / s.pixels * s.groups + c / s.width";
    return walk.endsWith("rows") ? "r" : `r / s.pixels * s.groups + ${index} * 4u / s.width`;
  };
  return {
    before: ({ own }) => `  var ${own("products")} = vec4f();
  var ${own("sum")} = vec4f();
`,
    row(quad) {
      const { of, own } = quad;
      const centred = `${of("input")}${mean ? ` - ${at("mean")}` : ""}`;
      return `    let place = ${placeOf(quad)};
    let dy = ${kept(rows, of("outGradient"))};
    ${own("sum")} += dy;
    ${own("products")} += ${kept(rows, `dy * (${centred}) * ${at("rstd")}`)};
`;
    },
    after: ({ own, partial }) =>
      (weight ? `  store_weightSums(${partial}, ${own("products")});\n` : "") +
      (bias ? `  store_biasSums(${partial}, ${own("sum")});\n` : ""),
  };
}

const sumKernel = byVariant((walk: SumWalk, parts): Kernel => {
  const { mean, weight, bias } = parts;
  const isInPairs = walk.startsWith("pairs");
  return defineWovenKernel({
    name: "normParameterGradients",
    factors: 8,
    variant: variantOf(walk, parts),
    bindings: present([
      { name: "input", access: "read" },
      mean && { name: "mean", access: "read", dtypes: ["float32"] },
      { name: "rstd", access: "read", dtypes: ["float32"] },
      { name: "outGradient", access: "read" },
      weight && { name: "weightSums", access: "write", dtypes: ["float32"] },
      bias && { name: "biasSums", access: "write", dtypes: ["float32"] },
    ]),
    scalars: [
      ...shapeScalars,
      { name: "rows", type: "u32" },
      { name: "channels", type: "u32" },
      { name: "chunks", type: "u32" },
    ],
    streams: (_, name) => isInPairs && ["input", "outGradient"].includes(name),
    body: (context, _, quads) =>
      partialProgram(walk === "lanes" ? "gather" : "quads", sumCode(walk, parts), context, quads),
    workgroups: (scalars, _, context, quads) => partialWorkgroups(scalars, context, quads),
    reference(views, scalars) {
      const rest = [...views];
      const x = rest.shift() as KernelView;
      const means = mean ? rest.shift() : undefined;
      const rstd = rest.shift() as KernelView;
      const dy = rest.shift() as KernelView;
      const { channels, chunks } = scalars as Readonly<Record<"channels" | "chunks", number>>;
      const products = new Float64Array(chunks * channels);
      const sums = new Float64Array(chunks * channels);
      forEachElement(scalars, (i, row, c) => {
        const to = (Math.floor(i / channels) % chunks) * channels + c;
        const centred = (x[i] as number) - (means ? (means[row] as number) : 0);
        products[to] =
          (products[to] as number) + (dy[i] as number) * centred * (rstd[row] as number);
        sums[to] = (sums[to] as number) + (dy[i] as number);
      });
      if (weight) rest.shift()?.set(products);
      if (bias) rest.shift()?.set(sums);
    },
  });
});
