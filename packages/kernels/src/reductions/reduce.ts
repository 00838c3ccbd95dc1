import type {
  Binding,
  Kernel,
  KernelView,
  Launch,
  LaunchTarget,
  ProgramContext,
} from "@halfstep/device";
import { requireOneOf } from "../attributes.js";
import { isCpu } from "../cpu-adapter.js";
import { type Domain, domainOf, dtypesOf, quadType } from "../domain.js";
import { defineWovenKernel, linearMain, linearWorkgroups, zeroBehind } from "../kernel.js";
import { requireLengths, requireTarget } from "../operands.js";
import { scratch } from "../scratch.js";
import type { UnitQuads } from "../wgsl/quad-units.js";
import { type Team, team, teamMain } from "../wgsl/team.js";

/** The reduction of a line of numbers. */
export type ReduceOp = (typeof reduceOps)[number];

const reduceOps = ["sum", "mean", "max", "min", "prod", "sumOfSquares"] as const;

/** An input [outer, size, inner], reduced over its middle dimension. */
export interface ReduceAttributes {
  readonly op: ReduceOp;
  /** The input is a contiguous [outer, size, inner], reduced over `size`. */
  readonly outer: number;
  readonly size: number;
  readonly inner: number;
}

/**
 * out[outer, inner] = the sum, mean, maximum, minimum, product or sum of squares of input[outer, size, inner] over its middle axis.
 *
 * Sums are float32, in a fixed order. Long axes with few results are summed in stages through float32 scratch of the target. NaN
 * and infinities propagate. Integers are added and multiplied modulo 2^32; they have no mean and no sum of squares. Throws a `RangeError`
 * for an unknown op, where a length does not match, or for the extremum of an empty axis, and a `TypeError` without a target.
 */
export function reduce<B>(
  target: LaunchTarget<B>,
  operands: { readonly input: Binding<B>; readonly out: Binding<B> },
  attributes: ReduceAttributes,
): void {
  requireTarget("reduce", target);
  const { op, outer } = attributes;
  requireOneOf("reduce", "op", op, reduceOps);
  let { size, inner } = attributes;
  const { out } = operands;
  requireLengths("reduce", operands, { input: outer * size * inner, out: outer * inner });
  if (isExtremum(op) && size === 0)
    throw new RangeError(`reduce: the ${op}imum over an axis of size 0 is undefined`);
  let fold: Fold = op === "mean" ? "sum" : op;
  let input = operands.input;
  const domain = domainOf(input.dtype);
  const partials = domain === "float" ? "float32" : domain;
  for (;;) {
    const chunks = chunkCount(outer, size, inner);
    if (chunks === 1) break;
    // Long rows are summed as four interleaved columns, which a later stage adds up.
    const isRow = inner === 1 && size % 4 === 0;
    const columns = isRow ? 4 : inner;
    const partial = scratch(target, outer * chunks * columns, partials);
    const stage = { outer, size: isRow ? size / 4 : size, inner: columns, chunks };
    target.launch(launchOf(fold, input, partial, stage, 1));
    input = partial;
    if (fold === "sumOfSquares") fold = "sum";
    size = isRow ? chunks * 4 : chunks;
    inner = isRow ? 1 : columns;
  }
  const scale = op === "mean" ? 1 / attributes.size : 1;
  target.launch(launchOf(fold, input, out, { outer, size, inner, chunks: 1 }, scale));
}

type Fold = "sum" | "max" | "min" | "prod" | "sumOfSquares";

/**
 * What an invocation reduces: a quad of columns or a pair of such quads, four rows, or four lines of which it gathers the elements. On GPUs
 * a team sums four "long" rows, whose lanes load neighbouring quads, or pairs of quads.
 */
type Walk = "quads" | "pairs" | "rows" | "longRows" | "longPairs" | "gather";

function walkOf({ size, inner, chunks }: Stage): Walk {
  if (inner % 4 === 0) return inner % 8 === 0 ? "pairs" : "quads";
  if (inner !== 1 || chunks !== 1 || size % 4 !== 0 || size === 0) return "gather";
  if (size < 32) return "rows";
  return size % 8 === 0 ? "longPairs" : "longRows";
}

interface Stage {
  readonly outer: number;
  readonly size: number;
  readonly inner: number;
  /** Chunk k of an axis holds its elements k, k + chunks, k + 2·chunks, … */
  readonly chunks: number;
}

const directSize = 128;

/** Enough to keep the loads of a large GPU busy: 4 MB at a time, if each invocation has four of 16 bytes under way. */
const invocations = 65_536;

/** The number of chunks in which to reduce each axis: 1 unless the axis is long and the results too few to occupy a device. */
function chunkCount(outer: number, size: number, inner: number): number {
  const isRow = inner === 1 && size % 4 === 0;
  const steps = isRow ? size / 4 : size;
  const quads = Math.ceil((outer * (isRow ? 4 : inner)) / 4);
  if (steps <= directSize || quads === 0) return 1;
  return Math.max(1, Math.min(Math.ceil(steps / 32), Math.floor(invocations / quads)));
}

function launchOf<B>(
  fold: Fold,
  input: Binding<B>,
  out: Binding<B>,
  stage: Stage,
  scale: number,
): Launch<B> {
  const domain = domainOf(input.dtype);
  const isFloat = domain === "float";
  if (!isFloat && (fold === "sumOfSquares" || scale !== 1))
    throw new RangeError(`reduce: a mean or a sum of squares needs floats, not ${input.dtype}`);
  const { outer, size, inner, chunks } = stage;
  return {
    kernel: kernelOf(fold, walkOf(stage), domain),
    bindings: [input, out],
    scalars: isFloat ? { outer, size, inner, chunks, scale } : { outer, size, inner, chunks },
  };
}

const isExtremum = (op: string): op is "max" | "min" => op === "max" || op === "min";

const foldOf: Record<Fold, (acc: string, value: string) => string> = {
  sum: (acc, value) => `${acc} + ${value}`,
  sumOfSquares: (acc, value) => `${acc} + ${value} * ${value}`,
  prod: (acc, value) => `${acc} * ${value}`,
  max: (acc, value) => `further(${acc}, ${value})`,
  min: (acc, value) => `further(${acc}, ${value})`,
};

// It tests the bits for NaN, because WGSL may assume that NaN does not occur in comparisons.
const further = (fold: "max" | "min"): string => /* wgsl */ `
fn is_nan(v: vec4f) -> vec4<bool> { return (bitcast<vec4u>(v) & vec4u(0x7fffffffu)) > vec4u(0x7f800000u); }
fn further(a: vec4f, b: vec4f) -> vec4f { return select(select(a, b, (b ${fold === "max" ? ">" : "<"} a) | is_nan(b)), a, is_nan(a)); }
`;

/** The team that sums four rows on a device; undefined where an invocation does. */
const teamOf = (fold: Fold, walk: Walk, domain: Domain, context: ProgramContext) =>
  walk.startsWith("long") && isSum(fold) && domain === "float" && !isCpu(context)
    ? team(context.subgroupSize || 64, context)
    : undefined;

const isSum = (fold: Fold): boolean => fold === "sum" || fold === "sumOfSquares";

function bodyOf(
  fold: Fold,
  walk: Walk,
  domain: Domain,
  owners: Team | undefined,
  quads: UnitQuads,
): string {
  const isFloat = domain === "float";
  const type = quadType(domain);
  const combine =
    isExtremum(fold) && !isFloat
      ? (acc: string, value: string) => `${fold}(${acc}, ${value})`
      : foldOf[fold];
  const neutral = `${type}(${fold === "prod" ? 1 : 0})`;
  const start = (first: string): string => (isExtremum(fold) ? first : neutral);
  const head = `${isExtremum(fold) && isFloat ? further(fold) : ""}${owners ? teamMain(owners) : linearMain()}`;
  const scaled = (value: string): string => (isFloat ? `${value} * s.scale` : value);
  /** The quads of a unit `x`. */
  const quadsOf = (x: string): readonly string[] =>
    quads === 1 ? [x] : [0, 1].map((half) => `${x}[${half}]`);
  if (walk === "quads" || walk === "pairs")
    return `${head}
  let units = s.inner / ${4 * quads}u;
  if (index >= s.outer * s.chunks * units) { return; }
  let rest = index / units;
  let k = rest % s.chunks;
  let base = rest / s.chunks * s.size * units + index % units;
${quadsOf("load_input(base + k * units)")
  .map((first, half) => `  var acc${half} = ${start(first)};\n`)
  .join("")}
  for (var r = k; r < s.size; r += s.chunks) {
    let v = load_input(base + r * units);
${quadsOf("v")
  .map((v, half) => `    acc${half} = ${combine(`acc${half}`, v)};\n`)
  .join("")}  }
${quadsOf("")
  .map(
    (_, half) =>
      `  store_out(index${quads === 1 ? "" : ` * 2u + ${half}u`}, ${scaled(`acc${half}`)});\n`,
  )
  .join("")}}
`;
  if (walk !== "gather") {
    const lanes = ["x", "y", "z", "w"];
    const loop = lanes.map(
      (l, i) => `    let v${l} = load_input(base + ${i}u * units + j);
${quadsOf(`v${l}`)
  .map((v) => `    ${l} = ${combine(l, v)};\n`)
  .join("")}`,
    );
    // Lane i of the transposed accumulators belongs to row i.
    const columns = lanes.map((c) => `${type}(${lanes.map((l) => `${l}.${c}`).join(", ")})`);
    const join = fold === "sumOfSquares" ? foldOf.sum : combine;
    const [a, b, c, d] = columns as [string, string, string, string];
    const pair = join(c, d);
    const all = join(join(a, b), isExtremum(fold) ? pair : `(${pair})`);
    return `${head}
  if (index * 4u >= s.outer) { return; }
  let units = s.size / ${4 * quads}u;
  let base = index * 4u * units;
${lanes.map((l, i) => `  var ${l} = ${start(`load_input(base + ${i}u * units)`)};\n`).join("")}
  for (var j = ${owners ? "lane" : "0u"}; j < units; j${owners ? ` += ${owners.lanes}u` : "++"}) {
${loop.join("")}  }
${owners ? `  let all = ${owners.sum(all)};\n  if (lane != 0u) { return; }\n` : ""}  store_out(index, ${zeroBehind(scaled(owners ? "all" : `(${all})`), "s.outer", type)});
}
`;
  }
  const gather = (r: string): string =>
    `${type}(${["x", "y", "z", "w"].map((l) => `at_input(base.${l} + ${r}.${l} * s.inner)`).join(", ")})`;
  return `${head}
  if (index * 4u >= s.outer * s.chunks * s.inner) { return; }
  let e = vec4u(index * 4u) + vec4u(0u, 1u, 2u, 3u);
  let rest = e / s.inner;
  let k = rest % s.chunks;
  let base = rest / s.chunks * (s.size * s.inner) + e % s.inner;
  var acc = ${start(gather("k"))};
  for (var skipped = 0u; skipped < s.size; skipped += s.chunks) {
    let r = k + skipped;
    let v = ${gather("r")};
    acc = select(acc, ${combine("acc", "v")}, r < vec4u(s.size));
  }
  store_out(index, ${zeroBehind(scaled("acc"), "(s.outer * s.chunks * s.inner)", type)});
}
`;
}

function makeKernel(fold: Fold, walk: Walk, domain: Domain): Kernel {
  const isFloat = domain === "float";
  const dtypes = dtypesOf(domain);
  const owners = (context: ProgramContext) => teamOf(fold, walk, domain, context);
  return defineWovenKernel({
    name: "reduce",
    ...(isFloat && { epilogue: "store" }),
    variant: isFloat ? `${fold},${walk}` : `${fold},${walk},${domain}`,
    // Compared operands are not factors.
    factors: isExtremum(fold) ? 0 : 1,
    bindings: [
      { name: "input", access: "read", dtypes },
      { name: "out", access: "write", dtypes },
    ],
    scalars: [
      { name: "outer", type: "u32" },
      { name: "size", type: "u32" },
      { name: "inner", type: "u32" },
      { name: "chunks", type: "u32" },
      ...(isFloat ? [{ name: "scale", type: "f32" as const }] : []),
    ],
    // Pairs of rows only where a team moves them: an invocation's four rows would take eight accumulators.
    streams: (i) =>
      i === 0 && isFloat && (walk === "pairs" || (walk === "longPairs" && isSum(fold))),
    body: (context, _, quads = 1) => bodyOf(fold, walk, domain, owners(context), quads),
    subgroups: (context) => owners(context)?.usesSubgroups ?? false,
    workgroups: (_, [, results], context, quads = 1) =>
      owners(context)
        ? linearWorkgroups(Math.ceil((results as number) / 4), 1)
        : linearWorkgroups(Math.ceil((results as number) / (4 * quads))),
    reference: ([input, out], scalars) =>
      reduceReference(
        (isFloat ? floatSteps : integerSteps)[fold],
        domain,
        input as KernelView,
        out as KernelView,
        scalars,
      ),
  });
}

const kernels = new Map<string, Kernel>();

function kernelOf(fold: Fold, walk: Walk, domain: Domain): Kernel {
  const key = `${fold},${walk},${domain}`;
  const kernel = kernels.get(key) ?? makeKernel(fold, walk, domain);
  kernels.set(key, kernel);
  return kernel;
}

/** The initial value of a reduction, and its step. */
type Step = readonly [number, (acc: number, value: number) => number];

const floatSteps: Record<Fold, Step> = {
  sum: [0, (acc, value) => acc + value],
  sumOfSquares: [0, (acc, value) => acc + value * value],
  prod: [1, (acc, value) => acc * value],
  max: [Number.NEGATIVE_INFINITY, Math.max],
  min: [Number.POSITIVE_INFINITY, Math.min],
};

/** The same of the low 32 bits. */
const integerSteps: Record<Fold, Step> = {
  ...floatSteps,
  sum: [0, (acc, value) => (acc + value) | 0],
  prod: [1, Math.imul],
};

function reduceReference(
  [start, combine]: Step,
  domain: Domain,
  input: KernelView,
  out: KernelView,
  scalars: Readonly<Record<string, number>>,
): void {
  const {
    outer,
    size,
    inner,
    chunks,
    scale = 1,
  } = scalars as unknown as Stage & { scale?: number };
  const acc = new Float64Array(outer * chunks * inner).fill(start);
  for (let o = 0, at = 0; o < outer; o++)
    for (let r = 0; r < size; r++)
      for (let i = 0, to = (o * chunks + (r % chunks)) * inner; i < inner; i++, at++, to++)
        acc[to] = combine(acc[to] as number, input[at] as number);
  for (let i = 0; i < acc.length; i++) {
    const result = acc[i] as number;
    out[i] = domain === "uint32" ? result >>> 0 : result * scale;
  }
}
