import type { KernelScalar, ProgramContext, Workgroups } from "@halfstep/device";
import { isCpu } from "../cpu-adapter.js";
import { linearMain, linearWorkgroups } from "../kernel.js";

/**
 * How a program over [rows, channels] visits its elements. With channels in whole quads an invocation keeps one quad of channels `c`
 * and iterates over the rows `k`, `k + s.chunks`, …; otherwise each of its four lanes has a channel of its own.
 */
export type RowWalk = "quads" | "gather";

export const rowWalk = (channels: number): RowWalk => (channels % 4 === 0 ? "quads" : "gather");

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
  return Math.max(1, Math.min(Math.ceil(rows / 32), most));
}

const invocations = 16_384;

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

/**
 * A program that reduces chunks of rows to partials [chunks, channels], with the {@link chunkFunctions}: in `body`, `index` is the
 * quad of the partials, `n` (vec4f) the number of rows of its chunk, and `first` one of them.
 */
export const partialProgram = (walk: RowWalk, body: string, context: ProgramContext): string =>
  `${chunkFunctions(context)}${linearMain(partialSize(context))}${partialHead[walk]}${
    isCpu(context)
      ? `  let first = k * chunk_length();
  let stop = min(first + chunk_length(), ${walk === "quads" ? "s.rows" : "vec4u(s.rows)"});
  let step = 1u;
`
      : `  let first = k;
  let stop = ${walk === "quads" ? "s.rows" : "vec4u(s.rows)"};
  let step = s.chunks;
`
  }${body}}
`;

/** Workgroups of a {@link partialProgram}. */
export function partialWorkgroups(
  { rows, channels, chunks }: Readonly<Record<string, number>>,
  context: ProgramContext,
): Workgroups {
  const length = Math.max(1, Math.ceil((rows as number) / (chunks as number))) * cpuWalk.chunks;
  const count = isCpu(context) ? Math.max(1, Math.ceil((rows as number) / length)) : chunks;
  return linearWorkgroups(
    Math.ceil(((count as number) * (channels as number)) / 4),
    partialSize(context),
  );
}

const partialSize = (context: ProgramContext): number => (isCpu(context) ? cpuWalk.size : 64);

const partialHead: Record<RowWalk, string> = {
  quads: /* wgsl */ `
  let quads = s.channels / 4u;
  if (index >= chunk_count() * quads) { return; }
  let c = index % quads;
  let k = index / quads;
  let n = chunk_rows(vec4u(k));
`,
  gather: /* wgsl */ `
  if (index * 4u >= chunk_count() * s.channels) { return; }
  let e = vec4u(index * 4u) + vec4u(0u, 1u, 2u, 3u);
  let c = e % s.channels;
  let k = min(e / s.channels, vec4u(chunk_count() - 1u));
  let n = chunk_rows(k);
`,
};

/** In a {@link partialProgram}: runs `body` for each row `r` of the chunk. Lanes past its last row must be masked with {@link kept}. */
export const rowLoop = (walk: RowWalk, body: string): string =>
  `for (var r = first; ${walk === "quads" ? "r < stop" : "any(r < stop)"}; r += step) {\n${body}  }\n`;

/** `value` where the lane's row exists, else 0. */
export const kept = (walk: RowWalk, value: string): string =>
  walk === "quads" ? value : `select(vec4f(0.0), ${value}, r < stop)`;

/** Elements (row, c) of a [rows, channels] binding. */
export const atRow = (walk: RowWalk, name: string, row: string): string =>
  walk === "quads"
    ? `load_${name}(${row} * quads + c)`
    : gathered(name, (lane) => `${row}.${lane} * s.channels + c.${lane}`);

/** Elements c of a [channels] binding. */
export const atChannel = (walk: RowWalk, name: string): string =>
  walk === "quads" ? `load_${name}(c)` : gathered(name, (lane) => `c.${lane}`);

/**
 * The entry point of an elementwise pass over [rows, channels]: `prelude` runs once and may use the channels `c`, `element(load)`
 * computes the vec4f to be stored in `out` from quads of the big operands. In the walk by quads each invocation processes s.rows /
 * s.chunks rows. On CPU adapters it processes many neighbouring ones, because starting an invocation takes as long as a few rows.
 */
export function elementPass(
  walk: RowWalk,
  prelude: string,
  element: (load: (name: string) => string) => string,
  out: string,
  context: ProgramContext,
): string {
  if (walk === "gather")
    return `${linearMain()}
  if (index * 4u >= s.rows * s.channels) { return; }
  let c = (vec4u(index * 4u) + vec4u(0u, 1u, 2u, 3u)) % s.channels;
${prelude}
  store_${out}(index, ${element((name) => `load_${name}(index)`)});
}
`;
  const [head, rows] = isCpu(context)
    ? [
        `${linearMain(cpuWalk.size)}
  let quads = s.channels / 4u;
  let c = index % quads;
  let first = index / quads * ${cpuWalk.rows}u;
  if (first >= s.rows) { return; }
`,
        `var r = first; r < min(first + ${cpuWalk.rows}u, s.rows); r++`,
      ]
    : [
        `${linearMain()}
  let quads = s.channels / 4u;
  if (index >= s.chunks * quads) { return; }
  let c = index % quads;
`,
        "var r = index / quads; r < s.rows; r += s.chunks",
      ];
  return `${head}${prelude}
  for (${rows}) {
    let q = r * quads + c;
    store_${out}(q, ${element((name) => `load_${name}(q)`)});
  }
}
`;
}

/** Workgroups of an {@link elementPass}. */
export function elementWorkgroups(
  walk: RowWalk,
  { rows, channels, chunks }: Readonly<Record<string, number>>,
  context: ProgramContext,
): Workgroups {
  const quads = (channels as number) / 4;
  if (walk === "gather") return linearWorkgroups(Math.ceil((rows as number) * quads));
  return isCpu(context)
    ? linearWorkgroups(Math.ceil((rows as number) / cpuWalk.rows) * quads, cpuWalk.size)
    : linearWorkgroups((chunks as number) * quads);
}

const cpuWalk = { size: 8, rows: 128, chunks: 8 };

const gathered = (name: string, index: (lane: string) => string): string =>
  `vec4f(${["x", "y", "z", "w"].map((lane) => `at_${name}(${index(lane)})`).join(", ")})`;
