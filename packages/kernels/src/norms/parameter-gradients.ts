import type { Binding, Kernel, KernelView, LaunchTarget } from "@halfstep/device";
import { mergeSums } from "../batch-norm/merge-sums.js";
import { defineKernel } from "../kernel.js";
import { scratch } from "../scratch.js";
import {
  atRow,
  chunkCount,
  kept,
  partialProgram,
  partialWorkgroups,
  rowLoop,
} from "../wgsl/row-walk.js";
import { forEachElement } from "./normalize.js";
import { rowOwner } from "./row-owner.js";
import {
  byVariant,
  type NormShape,
  type NormStatistics,
  type NormWalk,
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
    kernel: sumKernel(rowOwner(shape) ? "rows" : normWalk(shape), parts),
    bindings: presentBindings([input, mean, rstd, outGradient, weight?.sums, bias?.sums]),
    scalars: { batch, pixels, groups, width, rows, channels, chunks },
  });
  mergeSums(target, [first, second], { rows, channels, chunks });
}

/** With "rows", the statistics of a row are at the index of the row. */
type SumWalk = NormWalk | "rows";

const sumKernel = byVariant((walk: SumWalk, parts): Kernel => {
  const { mean, weight, bias } = parts;
  const rows = walk !== "lanes" ? "quads" : "gather";
  const place =
    walk === "rows"
      ? "r"
      : walk === "quads"
        ? "r / s.pixels * s.groups + c * 4u / s.width"
        : "min(r, vec4u(s.rows - 1u)) / s.pixels * s.groups + c / s.width";
  const centred = `${atRow(rows, "input", "r")}${mean ? ` - ${statistic(walk === "lanes" ? "lanes" : "quads", "mean", "place")}` : ""}`;
  return defineKernel({
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
    body: (context) =>
      partialProgram(
        rows,
        `  var products = vec4f();
  var sum = vec4f();
  ${rowLoop(
    rows,
    `    let place = ${place};
    let dy = ${kept(rows, atRow(rows, "outGradient", "r"))};
    sum += dy;
    products += ${kept(rows, `dy * (${centred}) * ${statistic(walk === "lanes" ? "lanes" : "quads", "rstd", "place")}`)};
`,
  )}
${weight ? "  store_weightSums(index, products);\n" : ""}${bias ? "  store_biasSums(index, sum);\n" : ""}`,
        context,
      ),
    workgroups: (scalars, _, context) => partialWorkgroups(scalars, context),
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
