import type { Binding, Kernel, KernelView, LaunchTarget } from "@halfstep/device";
import { defineKernel, linearMain, linearWorkgroups } from "../kernel.js";
import { requireLengths } from "../operands.js";
import { scratch } from "../scratch.js";
import {
  byVariant,
  foldHead,
  foldLoop,
  type NormShape,
  type NormStatistics,
  normWalk,
  pixelChunks,
  present,
  presentBindings,
  rowUnit,
  shapeScalars,
  total,
} from "./shape.js";

/**
 * mean [batch, groups] and rstd [batch, groups] of an input [batch, pixels, groups, width], in float32 relative to each group's
 * own mean. Large groups are reduced in chunks, which are merged by their means and squared deviations (Chan, Golub and LeVeque
 * 1983). Without `mean`, rstd is that of RMS norm.
 */
export function normStatistics<B>(
  target: LaunchTarget<B>,
  operands: { readonly input: Binding<B> } & NormStatistics<B>,
  attributes: NormShape & { readonly eps: number },
): void {
  const { batch, pixels, groups, width, eps } = attributes;
  const { input, mean, rstd } = operands;
  requireLengths("normStatistics", operands, {
    input: batch * pixels * groups * width,
    mean: batch * groups,
    rstd: batch * groups,
  });
  if (pixels * width === 0)
    throw new RangeError("normStatistics: a group has no elements, and so no statistics");
  const chunks = pixelChunks(attributes);
  const scalars = { batch, pixels, groups, width, chunks, eps, scale: 1 / (pixels * width) };
  const parts = { mean: mean !== undefined, weight: false, bias: false };
  const fold = foldKernel(normWalk(attributes), parts);
  if (chunks === 1) {
    target.launch({ kernel: fold, bindings: presentBindings([input, mean, rstd]), scalars });
    return;
  }
  const partial = (): Binding<B> => scratch(target, batch * chunks * groups);
  const means = mean && partial();
  const deviations = partial();
  target.launch({ kernel: fold, bindings: presentBindings([input, means, deviations]), scalars });
  target.launch({
    kernel: mergeKernel(normWalk(attributes), parts),
    bindings: presentBindings([means, deviations, mean, rstd]),
    scalars,
  });
}

const scalars = [
  ...shapeScalars,
  { name: "chunks", type: "u32" },
  { name: "eps", type: "f32" },
  { name: "scale", type: "f32" },
] as const;

type Numbers = Readonly<
  Record<"batch" | "pixels" | "groups" | "width" | "chunks" | "eps" | "scale", number>
>;

// A reduction in one chunk is complete, and stores rstd instead of the squared deviations.
const foldKernel = byVariant((walk, { mean }): Kernel => {
  const unit = rowUnit(walk);
  const isLast = walk !== "lanes" ? "s.chunks == 1u" : "vec4<bool>(s.chunks == 1u)";
  const centred = (x: string): string =>
    walk !== "lanes" ? `${x} - mean` : `select(vec4f(), ${x} - mean, inside)`;
  return defineKernel({
    name: "normStatistics",
    factors: 8,
    variant: `${walk}${mean ? ",mean" : ""}`,
    bindings: present([
      { name: "input", access: "read" },
      mean && { name: "mean", access: "write", unit, dtypes: ["float32"] },
      { name: "spread", access: "write", unit, dtypes: ["float32"] },
    ]),
    scalars,
    body: () => `${linearMain()}${foldHead[walk]}
${
  mean
    ? `  var sum = vec4f();
  ${foldLoop(walk, (load) => `    sum += ${load("input")};\n`)}
  let mean = (${total(walk, "sum")}) / count;
`
    : ""
}  var squares = vec4f();
  ${foldLoop(
    walk,
    (load) =>
      `    let d = ${mean ? centred(load("input")) : load("input")};
    squares += d * d;
`,
  )}
  let spread = ${total(walk, "squares")};
${mean ? "  store_mean(index, mean);\n" : ""}  store_spread(index, select(spread, inverseSqrt(spread * s.scale + s.eps), ${isLast}));
}
`,
    workgroups: ({ batch, chunks, groups }) => {
      const rows = (batch as number) * (chunks as number) * (groups as number);
      return linearWorkgroups(walk !== "lanes" ? rows : Math.ceil(rows / 4));
    },
    reference(views, values) {
      const s = values as Numbers;
      const x = views[0] as KernelView;
      const means = mean ? views[1] : undefined;
      const spreads = views.at(-1) as KernelView;
      for (let row = 0; row < s.batch * s.chunks * s.groups; row++) {
        const centre = means ? sumOf(x, s, row, (v) => v) / countOf(s, row) : 0;
        const spread = sumOf(x, s, row, (v) => (v - centre) ** 2);
        if (means) means[row] = centre;
        spreads[row] = s.chunks === 1 ? 1 / Math.sqrt(spread * s.scale + s.eps) : spread;
      }
    },
  });
});

const mergeKernel = byVariant((_, { mean }): Kernel => {
  const at = (k: string): string => `(b * s.chunks + ${k}) * s.groups + g`;
  return defineKernel({
    name: "normMerge",
    variant: mean ? "mean" : "",
    bindings: present([
      mean && { name: "means", access: "read", dtypes: ["float32"] },
      { name: "spreads", access: "read", dtypes: ["float32"] },
      mean && { name: "mean", access: "write", dtypes: ["float32"] },
      { name: "rstd", access: "write", dtypes: ["float32"] },
    ]),
    scalars,
    body: () => `
fn pixels_of(k: u32) -> f32 { return f32((s.pixels - 1u - k) / s.chunks + 1u); }
fn merged(row: u32) -> vec2f {
  let g = row % s.groups;
  let b = min(row / s.groups, s.batch - 1u);
  var mean = 0.0;
  var spread = 0.0;
${
  mean
    ? `  let origin = at_means(${at("0u")});
  for (var k = 0u; k < s.chunks; k++) { mean += pixels_of(k) * (at_means(${at("k")}) - origin); }
  mean = origin + mean / f32(s.pixels);
`
    : ""
}  for (var k = 0u; k < s.chunks; k++) {
    spread += at_spreads(${at("k")});
${
  mean
    ? `    let d = at_means(${at("k")}) - mean;
    spread += pixels_of(k) * f32(s.width) * d * d;
`
    : ""
}  }
  return vec2f(mean, inverseSqrt(spread * s.scale + s.eps));
}
${linearMain()}
  if (index * 4u >= s.batch * s.groups) { return; }
  let i = index * 4u;
  let x = merged(i);
  let y = merged(i + 1u);
  let z = merged(i + 2u);
  let w = merged(i + 3u);
${mean ? "  store_mean(index, vec4f(x.x, y.x, z.x, w.x));\n" : ""}  store_rstd(index, vec4f(x.y, y.y, z.y, w.y));
}
`,
    workgroups: ({ batch, groups }) =>
      linearWorkgroups(Math.ceil(((batch as number) * (groups as number)) / 4)),
    reference(views, values) {
      const s = values as Numbers;
      const [means, spreads, centres, rstd] = mean
        ? (views as [KernelView, KernelView, KernelView, KernelView])
        : [undefined, views[0] as KernelView, undefined, views[1] as KernelView];
      for (let b = 0; b < s.batch; b++)
        for (let g = 0; g < s.groups; g++) {
          const rows = Array.from(
            { length: s.chunks },
            (_, k) => (b * s.chunks + k) * s.groups + g,
          );
          const size = s.pixels * s.width;
          const weighted = (row: number): number =>
            countOf(s, row) * ((means?.[row] as number | undefined) ?? 0);
          const centre = rows.reduce((sum, row) => sum + weighted(row), 0) / size;
          const spread = rows.reduce((sum, row) => {
            const d = means ? (means[row] as number) - centre : 0;
            return sum + (spreads[row] as number) + countOf(s, row) * d * d;
          }, 0);
          if (centres) centres[b * s.groups + g] = centre;
          rstd[b * s.groups + g] = 1 / Math.sqrt(spread * s.scale + s.eps);
        }
    },
  });
});

/** Elements in row (b, k, g). */
const countOf = ({ pixels, groups, chunks, width }: Numbers, row: number): number => {
  const k = Math.floor(row / groups) % chunks;
  return (Math.floor((pixels - 1 - k) / chunks) + 1) * width;
};

function sumOf(x: KernelView, s: Numbers, row: number, of: (value: number) => number): number {
  const { pixels, groups, width, chunks } = s;
  const g = row % groups;
  const b = Math.floor(row / (groups * chunks));
  let sum = 0;
  for (let p = Math.floor(row / groups) % chunks; p < pixels; p += chunks) {
    const start = ((b * pixels + p) * groups + g) * width;
    for (let i = start; i < start + width; i++) sum += of(x[i] as number);
  }
  return sum;
}
