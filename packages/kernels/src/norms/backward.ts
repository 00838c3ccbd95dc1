import type { Binding, Kernel, KernelView, LaunchTarget } from "@halfstep/device";
import { defineKernel, linearMain } from "../kernel.js";
import { requireLengths, requireTarget } from "../operands.js";
import { reduce } from "../reductions/reduce.js";
import { scratch } from "../scratch.js";
import { teamMain } from "../wgsl/team.js";
import { channel, elementMain, elementWorkgroups, forEachElement } from "./normalize.js";
import { normParameterGradients } from "./parameter-gradients.js";
import { rowGradient } from "./row-gradient.js";
import { rowOwner } from "./row-owner.js";
import {
  byVariant,
  foldHead,
  foldLoop,
  foldTeam,
  foldWorkgroups,
  gradientViews,
  isLarge,
  joined,
  type NormShape,
  type NormStatistics,
  normWalk,
  oneLane,
  pixelChunks,
  present,
  presentBindings,
  rowUnit,
  shapeScalars,
  statistic,
  total,
  variantOf,
} from "./shape.js";

/**
 * Gradients of group, layer and RMS norm from the statistics of the forward pass.
 *
 * With x̂ = (input − mean) · rstd and h = outGradient · weight: inputGradient = rstd · (h − avg(h) − x̂ · avg(h · x̂)). The averages
 * are over each group, and the first is for centred norms only (Ba, Kiros and Hinton 2016; Zhang and Sennrich 2019). Then
 * weightGradient = Σ outGradient · x̂ and biasGradient = Σ outGradient over batch and pixels. Sums are float32 in a fixed order.
 */
export function normBackward<B>(
  target: LaunchTarget<B>,
  operands: {
    readonly input: Binding<B>;
    readonly weight?: Binding<B> | undefined;
    readonly outGradient: Binding<B>;
    readonly inputGradient: Binding<B>;
    readonly weightGradient?: Binding<B> | undefined;
    readonly biasGradient?: Binding<B> | undefined;
  } & NormStatistics<B>,
  shape: NormShape,
): void {
  requireTarget("normBackward", target);
  const { batch, pixels, groups, width } = shape;
  const size = batch * pixels * groups * width;
  const rows = batch * groups;
  requireLengths("normBackward", operands, {
    input: size,
    mean: rows,
    rstd: rows,
    weight: groups * width,
    outGradient: size,
    inputGradient: size,
    weightGradient: groups * width,
    biasGradient: groups * width,
  });
  const owner = rowOwner(shape);
  if (owner) target.launch(rowGradient(owner, operands, shape));
  else if (size > 0) groupGradient(target, operands, shape);
  normParameterGradients(target, operands, shape);
}

/** inputGradient of groups that are not rows: first their sums (by chunks of pixels where groups are large), then the gradient. */
function groupGradient<B>(
  target: LaunchTarget<B>,
  operands: {
    readonly input: Binding<B>;
    readonly weight?: Binding<B> | undefined;
    readonly outGradient: Binding<B>;
    readonly inputGradient: Binding<B>;
  } & NormStatistics<B>,
  shape: NormShape,
): void {
  const { batch, pixels, groups, width } = shape;
  const rows = batch * groups;
  const { input, mean, rstd, weight, outGradient, inputGradient } = operands;
  const walk = normWalk(shape);
  const parts = { mean: !!mean, weight: !!weight, bias: false };
  const chunks = pixelChunks(shape);
  const sumParts = { ...parts, large: isLarge(shape, chunks) };
  const scalars = { batch, pixels, groups, width, chunks, scale: 1 / (pixels * width) };
  const partials = rowSums(target, rows * chunks, !!mean);
  target.launch({
    kernel: foldKernel(walk, sumParts),
    bindings: presentBindings([
      input,
      mean,
      rstd,
      weight,
      outGradient,
      partials.sums,
      partials.products,
    ]),
    scalars,
  });
  const totals = chunks === 1 ? partials : rowSums(target, rows, !!mean);
  if (chunks > 1)
    for (const name of ["sums", "products"] as const) {
      const [partial, sum] = [partials[name], totals[name]];
      const over = { op: "sum", outer: batch, size: chunks, inner: groups } as const;
      if (partial && sum) reduce(target, { input: partial, out: sum }, over);
    }
  target.launch({
    kernel: inputKernel(walk, parts),
    bindings: presentBindings([input, mean, rstd, weight, outGradient, totals.both, inputGradient]),
    scalars: { ...scalars, products_start: totals.productsStart },
  });
}

/** Alignment of a bound part of a float32 buffer, in elements. */
const bindable = 64;

/**
 * Scratch memory for two numbers a row, or one where norms are not centred. They share one buffer and one binding of the last
 * launch: with eight bindings, it could not store its result twice (see twin.ts).
 */
function rowSums<B>(target: LaunchTarget<B>, rows: number, isCentred: boolean) {
  const productsStart = isCentred ? Math.ceil(rows / bindable) * bindable : 0;
  const both = scratch(target, productsStart + rows);
  return {
    both,
    productsStart,
    sums: isCentred ? { ...both, length: rows } : undefined,
    products: { ...both, offset: 4 * productsStart, length: rows },
  };
}

const scalars = [
  ...shapeScalars,
  { name: "chunks", type: "u32" },
  { name: "scale", type: "f32" },
] as const;

type Numbers = NormShape & { readonly chunks: number; readonly scale: number };

const foldKernel = byVariant((walk, parts): Kernel => {
  const { mean, weight } = parts;
  const unit = rowUnit(walk);
  const kept = (value: string): string =>
    walk !== "lanes" ? value : `select(vec4f(), ${value}, inside)`;
  return defineKernel({
    name: "normGradientSums",
    factors: 8,
    variant: variantOf(walk, parts),
    bindings: present([
      { name: "input", access: "read" },
      mean && { name: "mean", access: "read", dtypes: ["float32"] },
      { name: "rstd", access: "read", dtypes: ["float32"] },
      weight && { name: "weight", access: "read" },
      { name: "outGradient", access: "read" },
      mean && { name: "sums", access: "write", unit, dtypes: ["float32"] },
      { name: "products", access: "write", unit, dtypes: ["float32"] },
    ]),
    scalars,
    body(context) {
      const owners = foldTeam(parts, context);
      return `${owners ? teamMain(owners) : linearMain()}${foldHead[walk]}
  let place = b * s.groups + g;
${mean ? `  let mean = ${statistic(walk, "mean", "place")};\n` : ""}  var sum = vec4f();
  var products = vec4f();
  ${foldLoop(
    walk,
    owners,
    (
      load,
      byChannel,
    ) => `    let h = ${load("outGradient")}${weight ? ` * ${byChannel("weight")}` : ""};
    sum += h;
    products += h * ${mean ? `(${kept(`${load("input")} - mean`)})` : load("input")};
`,
  )}
${joined(owners, ...(mean ? ["sum"] : []), "products")}${oneLane(owners)}${mean ? `  store_sums(index, ${total(walk, "sum")});\n` : ""}  store_products(index, (${total(walk, "products")}) * ${statistic(walk, "rstd", "place")});
}
`;
    },
    subgroups: (context) => foldTeam(parts, context)?.usesSubgroups ?? false,
    workgroups: (values, _, context) => foldWorkgroups(walk, values, foldTeam(parts, context)),
    reference(views, values) {
      const { x, mean: means, rstd, weight: gain, dy, rest } = gradientViews(views, parts);
      const products = rest.at(-1) as KernelView;
      const { pixels, groups, width, chunks } = values as unknown as Numbers;
      const sums = new Float64Array(products.length);
      const dots = new Float64Array(products.length);
      forEachElement(values, (i, place, c) => {
        const b = Math.floor(place / groups);
        const p = Math.floor(i / (groups * width)) % pixels;
        const row = (b * chunks + (p % chunks)) * groups + (place % groups);
        const h = (dy[i] as number) * (gain ? (gain[c] as number) : 1);
        const centred = (x[i] as number) - (means ? (means[place] as number) : 0);
        sums[row] = (sums[row] as number) + h;
        dots[row] = (dots[row] as number) + h * centred * (rstd[place] as number);
      });
      if (means) rest[0]?.set(sums);
      products.set(dots);
    },
  });
});

const inputKernel = byVariant((walk, parts): Kernel => {
  const { mean, weight } = parts;
  return defineKernel({
    name: "normInputGradient",
    epilogue: "store",
    factors: 8,
    variant: variantOf(walk, parts),
    bindings: present([
      { name: "input", access: "read" },
      mean && { name: "mean", access: "read", dtypes: ["float32"] },
      { name: "rstd", access: "read", dtypes: ["float32"] },
      weight && { name: "weight", access: "read" },
      { name: "outGradient", access: "read" },
      { name: "sums", access: "read", dtypes: ["float32"] },
      { name: "inputGradient", access: "write" },
    ]),
    scalars: [...scalars, { name: "products_start", type: "u32" }],
    body: () =>
      elementMain(walk, {
        head: `    let rstd = ${statistic(walk, "rstd", "row")};
    let slope = ${statistic(walk, "sums", "(row + s.products_start)")} * s.scale;
${
  mean
    ? `    let mean = ${statistic(walk, "mean", "row")};
    let shift = ${statistic(walk, "sums", "row")} * s.scale;
`
    : ""
}`,
        body: `    let h = load_outGradient(q)${weight ? ` * ${channel(walk, "weight")}` : ""};
    let normalized = (load_input(q)${mean ? " - mean" : ""}) * rstd;
    store_inputGradient(q, (h${mean ? " - shift" : ""} - normalized * slope) * rstd);
`,
      }),
    workgroups: (values) => elementWorkgroups(values),
    reference(views, values) {
      const { x, mean: means, rstd, weight: gain, dy, rest } = gradientViews(views, parts);
      const [sums, out] = rest as [KernelView, KernelView];
      const { scale, products_start } = values as unknown as Numbers & { products_start: number };
      forEachElement(values, (i, row, c) => {
        const inverse = rstd[row] as number;
        const h = (dy[i] as number) * (gain ? (gain[c] as number) : 1);
        const normalized = ((x[i] as number) - (means ? (means[row] as number) : 0)) * inverse;
        const shift = means ? (sums[row] as number) * scale : 0;
        const slope = (sums[row + products_start] as number) * scale;
        out[i] = (h - shift - normalized * slope) * inverse;
      });
    },
  });
});
