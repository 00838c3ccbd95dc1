import type { KernelScalar, ProgramContext, Workgroups } from "@halfstep/device";
import { isCpu } from "../cpu-adapter.js";
import { linearMain, linearWorkgroups } from "../kernel.js";
import {
  eachQuad,
  holding,
  type Quad,
  type RowWalk,
  storeUnit,
  type UnitQuads,
} from "./quad-units.js";

// Programs over [rows, channels]. With channels in whole quads an invocation keeps one quad of channels `c` and iterates over the rows
// `k`, `k + s.chunks`, …; with "pairs" of quads it does so with two, where they are moved together.

/** A quad of channels of an invocation, in WGSL. */
export interface ChannelQuad {
  /** A variable that each quad of the invocation has for itself. */
  own(name: string): string;
  /** Its elements of a [channels] operand. */
  channel(operand: string): string;
  /** Its index in the quads of a row. */
  readonly index: string;
  /** Its index in partials [chunks, channels]. */
  readonly partial: string;
}

/** The same on one row of [rows, channels] operands, of which `of` has its elements. */
type RowQuad = ChannelQuad & Quad;

function channelQuads(walk: RowWalk, quads: UnitQuads): readonly ChannelQuad[] {
  if (quads === 1)
    return [
      {
        own: (name) => name,
        channel: (operand) =>
          walk === "gather" ? gathered(operand, (lane) => `c.${lane}`) : `load_${operand}(c)`,
        index: "c",
        partial: "index",
      },
    ];
  return [0, 1].map((half) => ({
    own: (name) => `${name}_${half}`,
    channel: (operand) => `load_${operand}(c * 2u + ${half}u)`,
    index: `(c * 2u + ${half}u)`,
    partial: `index * 2u + ${half}u`,
  }));
}

/**
 * Statements on the quads of an invocation in a row, a WGSL expression: after those that load the pairs that they read, or where `alone` is
 * the quad of an operand.
 */
function onRow(
  walk: RowWalk,
  quads: UnitQuads,
  row: string,
  alone: (operand: string) => string,
  statements: (unit: readonly RowQuad[]) => string,
): string {
  const unit = channelQuads(walk, quads);
  if (quads === 1) return statements(unit.map((quad) => ({ ...quad, of: alone })));
  const held = holding(quads, ["c"], ([pair = []]) =>
    statements(pair.map(({ of }, half) => ({ ...(unit[half] as ChannelQuad), of }))),
  );
  return `    let base = ${row} * units;\n${held}`;
}

/** Elements (row, c) of a [rows, channels] binding. */
const atRow =
  (walk: RowWalk, row: string) =>
  (name: string): string =>
    walk === "gather"
      ? gathered(name, (lane) => `${row}.${lane} * s.channels + c.${lane}`)
      : `load_${name}(${row} * units + c)`;

/** Scalars of every program over [rows, channels] that works in chunks of rows. */
export const chunkScalars: readonly KernelScalar[] = ["rows", "channels", "chunks"].map((name) => ({
  name,
  type: "u32",
}));

/**
 * The number of chunks of about 32 rows or more for which a launch computes partials [chunks, channels]; at least one. On CPU adapters
 * the programs merge {@link cpuWalk.chunks} of them into one, and do not write the remaining partials.
 */
export function chunkCount(rows: number, channels: number): number {
  const most = Math.ceil(invocations / Math.ceil(channels / 4));
  return Math.max(1, Math.min(Math.ceil(rows / 32), most, mostChunks));
}

/** As in reductions: enough to keep the loads of a large GPU busy. */
const invocations = 65_536;

/** A workgroup of 64 merges the chunks of a quad of channels, so that few channels with many chunks would wait for the merging. */
const mostChunks = 4096;

/**
 * WGSL: `chunk_count()`, and `chunk_rows(k)`, the rows of a chunk for each lane. Elsewhere the rows of a chunk are those that equal k
 * modulo the number of chunks, so that neighbouring invocations load neighbouring memory; on CPU adapters they are contiguous, which is
 * faster for a single invocation.
 */
export const chunkFunctions = (context: ProgramContext): string =>
  isCpu(context)
    ? /* wgsl */ `
fn chunk_length() -> u32 { return max((s.rows + s.chunks - 1u) / s.chunks, 1u) * ${cpuWalk.chunks}u; }
fn chunk_count() -> u32 { return max((s.rows + chunk_length() - 1u) / chunk_length(), 1u); }
fn chunk_rows(k: vec4u) -> vec4f { return vec4f(min(vec4u(chunk_length()), vec4u(s.rows) - k * chunk_length())); }
`
    : /* wgsl */ `
fn chunk_count() -> u32 { return s.chunks; }
fn chunk_rows(k: vec4u) -> vec4f { return vec4f(f32(s.rows / s.chunks)) + select(vec4f(), vec4f(1.0), k < vec4u(s.rows % s.chunks)); }
`;

/** The statements of a {@link partialProgram}, for each quad of its invocations. */
export interface PartialCode {
  /** Declarations before the loop over rows; `of` has the chunk's first row. Names that they declare are the quad's `own`. */
  readonly before: (quad: RowQuad) => string;
  /** Statements on row `r`. Lanes past the chunk's last row must be masked with {@link kept}. */
  readonly row: (quad: RowQuad) => string;
  /** Statements after the loop, which store at `partial`. */
  readonly after: (quad: ChannelQuad) => string;
}

/**
 * A program that reduces chunks of rows to partials [chunks, channels], with the {@link chunkFunctions}. In its code `n` (vec4f) is the
 * number of rows of the chunk.
 */
export function partialProgram(
  walk: RowWalk,
  { before, row, after }: PartialCode,
  context: ProgramContext,
  quads: UnitQuads = 1,
): string {
  const isGather = walk === "gather";
  const rows = isGather ? "vec4u(s.rows)" : "s.rows";
  const chunk = isCpu(context)
    ? `  let first = k * chunk_length();
  let stop = min(first + chunk_length(), ${rows});
  let step = 1u;
`
    : `  let first = k;
  let stop = ${rows};
  let step = s.chunks;
`;
  const stored = channelQuads(walk, quads);
  return `${chunkFunctions(context)}${linearMain(partialSize(context))}${isGather ? gatherHead : quadsHead(quads)}${chunk}${onRow(
    walk,
    quads,
    "first",
    atRow(walk, "first"),
    (unit) => unit.map(before).join(""),
  )}  for (var r = first; ${isGather ? "any(r < stop)" : "r < stop"}; r += step) {
${onRow(walk, quads, "r", atRow(walk, "r"), (unit) => eachQuad(unit, row))}  }
${stored.map(after).join("")}}
`;
}

/** Workgroups of a {@link partialProgram}. */
export function partialWorkgroups(
  { rows, channels, chunks }: Readonly<Record<string, number>>,
  context: ProgramContext,
  quads: UnitQuads = 1,
): Workgroups {
  const length = Math.max(1, Math.ceil((rows as number) / (chunks as number))) * cpuWalk.chunks;
  const count = isCpu(context) ? Math.max(1, Math.ceil((rows as number) / length)) : chunks;
  return linearWorkgroups(
    Math.ceil(((count as number) * (channels as number)) / (4 * quads)),
    partialSize(context),
  );
}

const partialSize = (context: ProgramContext): number => (isCpu(context) ? cpuWalk.size : 64);

const quadsHead = (quads: UnitQuads): string => `
  let units = s.channels / ${4 * quads}u;
  if (index >= chunk_count() * units) { return; }
  let c = index % units;
  let k = index / units;
  let n = chunk_rows(vec4u(k));
`;

const gatherHead = /* wgsl */ `
  if (index * 4u >= chunk_count() * s.channels) { return; }
  let e = vec4u(index * 4u) + vec4u(0u, 1u, 2u, 3u);
  let c = e % s.channels;
  let k = min(e / s.channels, vec4u(chunk_count() - 1u));
  let n = chunk_rows(k);
`;

/** In a {@link partialProgram}: `value` where the lane's row exists, else 0. */
export const kept = (walk: RowWalk, value: string): string =>
  walk === "gather" ? `select(vec4f(0.0), ${value}, r < stop)` : value;

/** The code of an {@link elementPass}, for each quad of its invocations. */
export interface ElementCode {
  /** Declarations, made once. Names that they declare are the quad's `own`. */
  readonly before: (quad: ChannelQuad) => string;
  /** The vec4f that is stored. */
  readonly stored: (quad: RowQuad) => string;
  /** The operand in which it is stored. */
  readonly out: string;
}

/**
 * The entry point of an elementwise pass over [rows, channels]. In the walk by quads each invocation processes s.rows / s.chunks rows. On
 * CPU adapters it processes many neighbouring ones, because starting an invocation takes as long as a few rows.
 */
export function elementPass(
  walk: RowWalk,
  { before, stored, out }: ElementCode,
  context: ProgramContext,
  quads: UnitQuads = 1,
): string {
  const prelude = channelQuads(walk, quads).map(before).join("");
  if (walk === "gather")
    return `${linearMain()}
  if (index * 4u >= s.rows * s.channels) { return; }
  let c = (vec4u(index * 4u) + vec4u(0u, 1u, 2u, 3u)) % s.channels;
${prelude}${channelQuads(walk, 1)
  .map(
    (quad) =>
      `  store_${out}(index, ${stored({ ...quad, of: (name) => `load_${name}(index)` })});\n`,
  )
  .join("")}}
`;
  const [head, rows] = isCpu(context)
    ? [
        `${linearMain(cpuWalk.size)}
  let units = s.channels / 4u;
  let c = index % units;
  let first = index / units * ${cpuWalk.rows}u;
  if (first >= s.rows) { return; }
`,
        `var r = first; r < min(first + ${cpuWalk.rows}u, s.rows); r++`,
      ]
    : [
        `${linearMain()}
  let units = s.channels / ${4 * quads}u;
  if (index >= s.chunks * units) { return; }
  let c = index % units;
`,
        "var r = index / units; r < s.rows; r += s.chunks",
      ];
  return `${head}${prelude}
  for (${rows}) {
    let q = r * units + c;
${onRow(
  walk,
  quads,
  "r",
  (name) => `load_${name}(q)`,
  (unit) => storeUnit(unit, "q", out, (quad) => ({ before: "    ", value: stored(quad) })),
)}  }
}
`;
}

/** Workgroups of an {@link elementPass}. */
export function elementWorkgroups(
  walk: RowWalk,
  { rows, channels, chunks }: Readonly<Record<string, number>>,
  context: ProgramContext,
  quads: UnitQuads = 1,
): Workgroups {
  const units = (channels as number) / (4 * quads);
  if (walk === "gather") return linearWorkgroups(Math.ceil((rows as number) * units));
  return isCpu(context)
    ? linearWorkgroups(Math.ceil((rows as number) / cpuWalk.rows) * units, cpuWalk.size)
    : linearWorkgroups((chunks as number) * units);
}

const cpuWalk = { size: 8, rows: 128, chunks: 8 };

const gathered = (name: string, index: (lane: string) => string): string =>
  `vec4f(${["x", "y", "z", "w"].map((lane) => `at_${name}(${index(lane)})`).join(", ")})`;
