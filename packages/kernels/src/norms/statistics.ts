import type { Binding, Kernel, KernelView, LaunchTarget, ProgramContext } from "@halfstep/device";
import { requireWithin } from "../attributes.js";
import { isCpu } from "../cpu-adapter.js";
import { defineKernel, linearMain, linearWorkgroups } from "../kernel.js";
import { requireLengths, requireTarget } from "../operands.js";
import { scratch } from "../scratch.js";
import { type Team, team, teamMain } from "../wgsl/team.js";
import {
  byVariant,
  foldHead,
  foldLoop,
  foldTeam,
  foldWorkgroups,
  gathered,
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
  total,
  variantOf,
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
  requireTarget("normStatistics", target);
  const { batch, pixels, groups, width, eps } = attributes;
  requireWithin("normStatistics", "eps", eps, 0);
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
  const parts = {
    ...{ mean: mean !== undefined, weight: false, bias: false },
    large: isLarge(attributes, chunks),
  };
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
const foldKernel = byVariant((walk, parts): Kernel => {
  const { mean } = parts;
  const unit = rowUnit(walk);
  const isLast = walk !== "lanes" ? "s.chunks == 1u" : "vec4<bool>(s.chunks == 1u)";
  const centred = (x: string): string =>
    walk !== "lanes" ? `${x} - mean` : `select(vec4f(), ${x} - mean, inside)`;
  return defineKernel({
    name: "normStatistics",
    factors: 8,
    variant: variantOf(walk, parts),
    bindings: present([
      { name: "input", access: "read" },
      mean && { name: "mean", access: "write", unit, dtypes: ["float32"] },
      { name: "spread", access: "write", unit, dtypes: ["float32"] },
    ]),
    scalars,
    body(context) {
      const owners = foldTeam(parts, context);
      const ofMean = `  var sum = vec4f();
  ${foldLoop(walk, owners, (load) => `    sum += ${load("input")};\n`)}
${joined(owners, "sum")}  let mean = (${total(walk, "sum")}) / count;
`;
      const stores = `${mean ? "  store_mean(index, mean);\n" : ""}  store_spread(index, select(spread, inverseSqrt(spread * s.scale + s.eps), ${isLast}));
`;
      return `${owners ? teamMain(owners) : linearMain()}${foldHead[walk]}
${mean ? ofMean : ""}  var squares = vec4f();
  ${foldLoop(
    walk,
    owners,
    (load) =>
      `    let d = ${mean ? centred(load("input")) : load("input")};
    squares += d * d;
`,
  )}
${joined(owners, "squares")}  let spread = ${total(walk, "squares")};
${oneLane(owners)}${stores}}
`;
    },
    subgroups: (context) => foldTeam(parts, context)?.usesSubgroups ?? false,
    workgroups: (values, _, context) => foldWorkgroups(walk, values, foldTeam(parts, context)),
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

/** The chunks of four groups, one for each lane of a vec4f, are shared by a team. */
const mergeByTeam = (owners: Team, mean: boolean): string => {
  const at = (name: string, k: string): string =>
    gathered(name, `((b * s.chunks + ${k}) * s.groups + g)`);
  const each = (body: string): string =>
    `  for (var k = lane; k < s.chunks; k += ${owners.lanes}u) {\n${body}  }\n`;
  return `${teamMain(owners)}
  if (index * 4u >= s.batch * s.groups) { return; }
  let row = min(vec4u(index * 4u) + vec4u(0u, 1u, 2u, 3u), vec4u(s.batch * s.groups - 1u));
  let g = row % s.groups;
  let b = row / s.groups;
  var spread = vec4f();
${
  mean
    ? `  let origin = ${at("means", "0u")};
  var apart = vec4f();
${each(`    apart += pixels_of(k) * (${at("means", "k")} - origin);\n`)}${joined(owners, "apart")}  let mean = origin + apart / f32(s.pixels);
`
    : ""
}${each(
  `    spread += ${at("spreads", "k")};
${
  mean
    ? `    let d = ${at("means", "k")} - mean;
    spread += pixels_of(k) * f32(s.width) * d * d;
`
    : ""
}`,
)}${joined(owners, "spread")}${oneLane(owners)}${mean ? "  store_mean(index, mean);\n" : ""}  store_rstd(index, inverseSqrt(spread * s.scale + s.eps));
}
`;
};

/** An invocation merges the chunks of four groups, one after the other. */
const mergeAlone = (mean: boolean): string => {
  const at = (k: string): string => `(b * s.chunks + ${k}) * s.groups + g`;
  return `fn merged(row: u32) -> vec2f {
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
`;
};

const mergeKernel = byVariant((_, { mean }): Kernel => {
  const owners = (context: ProgramContext): Team | undefined =>
    isCpu(context) ? undefined : team(64, context);
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
    body(context) {
      const lanes = owners(context);
      return `
fn pixels_of(k: u32) -> f32 { return f32((s.pixels - 1u - k) / s.chunks + 1u); }
${lanes ? mergeByTeam(lanes, mean) : mergeAlone(mean)}`;
    },
    subgroups: (context) => owners(context)?.usesSubgroups ?? false,
    workgroups: ({ batch, groups }, _, context) =>
      linearWorkgroups(
        Math.ceil(((batch as number) * (groups as number)) / 4),
        owners(context) ? 1 : 64,
      ),
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
