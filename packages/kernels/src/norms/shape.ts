import type {
  Binding,
  KernelBinding,
  KernelScalar,
  KernelView,
  ProgramContext,
  Workgroups,
} from "@halfstep/device";
import { isCpu } from "../cpu-adapter.js";
import { linearWorkgroups } from "../kernel.js";
import { type Team, team } from "../wgsl/team.js";

/**
 * An input [batch, pixels, groups, width], normalised over the pixels and the width of each group. Group norm of images in
 * NHWC order has their pixels and groups; layer norm and RMS norm of rows have one pixel and one group.
 */
export interface NormShape {
  readonly batch: number;
  readonly pixels: number;
  readonly groups: number;
  readonly width: number;
}

/** Statistics for each group, float32 [batch, groups]. */
export interface NormStatistics<B> {
  /** Absent for RMS norm, which does not centre. */
  readonly mean?: Binding<B> | undefined;
  /** 1 / √(variance + eps), the biased variance; for RMS norm 1 / √(mean square + eps). */
  readonly rstd: Binding<B>;
}

/**
 * With a width in whole quads an invocation processes quads of one group; otherwise each of its four lanes has a group of its own.
 */
export type NormWalk = "quads" | "lanes";

export const normWalk = ({ width }: NormShape): NormWalk => (width % 4 !== 0 ? "lanes" : "quads");

/** The optional operands of a kernel, and the size of its groups: a program each. */
export interface NormParts {
  readonly mean: boolean;
  readonly weight: boolean;
  readonly bias: boolean;
  /** Whether GPUs have a team for each group or chunk of a group. */
  readonly large?: boolean;
}

export const variantOf = (walk: string, parts: NormParts): string =>
  [walk, ...Object.entries(parts).flatMap(([name, isThere]) => (isThere ? [name] : []))].join(",");

/** The bindings of the present operands. */
export const present = (bindings: readonly (KernelBinding | false)[]): readonly KernelBinding[] =>
  bindings.filter((binding) => binding !== false);

export const presentBindings = <B>(
  bindings: readonly (Binding<B> | undefined)[],
): readonly Binding<B>[] => bindings.filter((binding) => binding !== undefined);

export const shapeScalars: readonly KernelScalar[] = (
  ["batch", "pixels", "groups", "width"] as const
).map((name) => ({ name, type: "u32" }));

/** A program for each combination of walk and optional operands, made on first use. */
export function byVariant<K, W extends string = NormWalk>(make: (walk: W, parts: NormParts) => K) {
  const made = new Map<string, K>();
  return (walk: W, parts: NormParts): K => {
    const key = variantOf(walk, parts);
    const known = made.get(key) ?? make(walk, parts);
    made.set(key, known);
    return known;
  };
}

/** The number of interleaved chunks of pixels in which a group is reduced: few, unless groups are large and few. */
export function pixelChunks({ batch, pixels, groups, width }: NormShape): number {
  const least = Math.ceil((pixels * width) / 512);
  const wanted = Math.ceil(4096 / Math.max(1, batch * groups));
  return Math.max(1, Math.min(pixels, least, wanted, 64));
}

/** Whether the chunks of a group, or the group, have enough elements for a team. */
export const isLarge = ({ pixels, width }: NormShape, chunks: number): boolean =>
  Math.ceil(pixels / chunks) * width >= 256;

/** The team that folds a row on a device; undefined where an invocation does. */
export const foldTeam = ({ large }: NormParts, context: ProgramContext): Team | undefined =>
  large && !isCpu(context) ? team(context.subgroupSize || 64, context) : undefined;

/** Adds up what the lanes of a team have in some variables, vec4f. */
export const joined = (owners: Team | undefined, ...variables: readonly string[]): string =>
  owners ? variables.map((name) => `  ${name} = ${owners.sum(name)};\n`).join("") : "";

/** Ends all lanes of a team but one, which stores. */
export const oneLane = (owners: Team | undefined): string =>
  owners ? "  if (lane != 0u) { return; }\n" : "";

/** Workgroups of a fold of [batch, chunks, groups] rows. */
export const foldWorkgroups = (
  walk: NormWalk,
  { batch, chunks, groups }: Readonly<Record<string, number>>,
  owners: Team | undefined,
): Workgroups => {
  const rows = (batch as number) * (chunks as number) * (groups as number);
  return linearWorkgroups(walk !== "lanes" ? rows : Math.ceil(rows / 4), owners ? 1 : 64);
};

/** Rows of a fold: row (b, k, g) has the pixels k, k + chunks, … of group g of entry b. */
export const foldHead: Record<NormWalk, string> = {
  quads: /* wgsl */ `
  if (index >= s.batch * s.chunks * s.groups) { return; }
  let row = index;
  let g = row % s.groups;
  let k = row / s.groups % s.chunks;
  let b = row / (s.groups * s.chunks);
  let steps = s.width / 4u;
  let line = s.groups * steps;
  let base = b * s.pixels * line + g * steps;
  let count = f32(((s.pixels - 1u - k) / s.chunks + 1u) * s.width);
`,
  lanes: /* wgsl */ `
  if (index * 4u >= s.batch * s.chunks * s.groups) { return; }
  let row = min(vec4u(index * 4u) + vec4u(0u, 1u, 2u, 3u), vec4u(s.batch * s.chunks * s.groups - 1u));
  let g = row % s.groups;
  let k = row / s.groups % s.chunks;
  let b = row / (s.groups * s.chunks);
  let steps = s.width;
  let line = s.groups * steps;
  let base = b * s.pixels * line + g * steps;
  let count = vec4f(((vec4u(s.pixels - 1u) - k) / s.chunks + 1u) * s.width);
`,
};

/**
 * Runs `body` for each quad, or for each element of four rows: `load` reads a full operand, `channel` an operand of channels. The lanes of
 * a team share them.
 */
export function foldLoop(
  walk: NormWalk,
  owners: Team | undefined,
  body: (load: (name: string) => string, channel: (name: string) => string) => string,
): string {
  const shared = (end: string): string =>
    `for (var t = lane; t < ${end} * steps; t += ${owners?.lanes}u) { {
    let j = t % steps;
`;
  if (walk !== "lanes")
    return `${
      owners
        ? `${shared("((s.pixels - 1u - k) / s.chunks + 1u)")}    let p = k + t / steps * s.chunks;\n`
        : "for (var p = k; p < s.pixels; p += s.chunks) { for (var j = 0u; j < steps; j++) {\n"
    }    let at = base + p * line + j;
${body(
  (name) => `load_${name}(at)`,
  (name) => `load_${name}(g * steps + j)`,
)}  } }
`;
  return `${
    owners
      ? `${shared("((s.pixels - 1u) / s.chunks + 1u)")}    let skipped = t / steps * s.chunks;\n`
      : "for (var skipped = 0u; skipped < s.pixels; skipped += s.chunks) { for (var j = 0u; j < steps; j++) {\n"
  }    let p = k + skipped;
    let inside = p < vec4u(s.pixels);
    let at = base + min(p, vec4u(s.pixels - 1u)) * line + j;
    let c = g * steps + j;
${body(
  (name) => `select(vec4f(), ${gathered(name, "at")}, inside)`,
  (name) => gathered(name, "c"),
)}  } }
`;
}

/** Four elements of a binding, each with an index of its own. */
export const gathered = (name: string, index: string): string =>
  `vec4f(${["x", "y", "z", "w"].map((lane) => `at_${name}(${index}.${lane})`).join(", ")})`;

/** A lane's total from its accumulator: in the walk by quads the lanes are added up. */
export const total = (walk: NormWalk, sum: string): string =>
  walk !== "lanes" ? `(${sum}.x + ${sum}.y) + (${sum}.z + ${sum}.w)` : sum;

/** The unit in which a reduction stores one number for each row. */
export const rowUnit = (walk: NormWalk): 1 | 4 => (walk !== "lanes" ? 1 : 4);

/** A statistic of the current row: one number for the quads of a group, or one for each lane. */
export const statistic = (walk: NormWalk, name: string, row: string): string =>
  walk !== "lanes" ? `at_${name}(${row})` : gathered(name, row);

/** The views of a gradient's operands, where given, and of the bindings after them. */
export interface GradientViews {
  readonly x: KernelView;
  readonly mean: KernelView | undefined;
  readonly rstd: KernelView;
  readonly weight: KernelView | undefined;
  readonly dy: KernelView;
  readonly rest: readonly KernelView[];
}

/** The views of a gradient's bindings by name. */
export function gradientViews(
  views: readonly KernelView[],
  { mean, weight }: { readonly mean: boolean; readonly weight: boolean },
): GradientViews {
  const rest = [...views];
  const next = (): KernelView => rest.shift() as KernelView;
  return {
    x: next(),
    mean: mean ? next() : undefined,
    rstd: next(),
    weight: weight ? next() : undefined,
    dy: next(),
    rest,
  };
}
