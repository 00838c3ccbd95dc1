import type { ProgramContext, Workgroups } from "@halfstep/device";
import { linearMain, linearWorkgroups } from "../kernel.js";

/**
 * How a program over [rows, channels] visits its elements. With channels in whole quads an invocation keeps one quad of
 * channels `c` and walks down the rows `k`, `k + s.chunks`, …; otherwise each of its four lanes has a channel of its own.
 */
export type RowWalk = "quads" | "gather";

export const rowWalk = (channels: number): RowWalk => (channels % 4 === 0 ? "quads" : "gather");

/**
 * The head of an entry point that reduces chunks of rows to partials [chunks, channels]: `index` is the quad of the partials,
 * `n` (vec4f) the number of rows of its chunk.
 */
export const partialHead: Record<RowWalk, string> = {
  quads: /* wgsl */ `
  let quads = s.channels / 4u;
  if (index >= s.chunks * quads) { return; }
  let c = index % quads;
  let k = index / quads;
  let n = vec4f(f32((s.rows - 1u - k) / s.chunks + 1u));
`,
  gather: /* wgsl */ `
  if (index * 4u >= s.chunks * s.channels) { return; }
  let e = vec4u(index * 4u) + vec4u(0u, 1u, 2u, 3u);
  let c = e % s.channels;
  let k = min(e / s.channels, vec4u(s.chunks - 1u));
  let n = vec4f(f32(s.rows / s.chunks)) + select(vec4f(0.0), vec4f(1.0), k < vec4u(s.rows % s.chunks));
`,
};

/** Runs `body` for each row `r` of the chunk. Lanes that are past the last row must be masked with {@link kept}. */
export const rowLoop = (walk: RowWalk, body: string): string =>
  walk === "quads"
    ? `for (var r = k; r < s.rows; r += s.chunks) {\n${body}  }\n`
    : `for (var r = k; any(r < vec4u(s.rows)); r += s.chunks) {\n${body}  }\n`;

/** `value` where the lane's row exists, else 0. */
export const kept = (walk: RowWalk, value: string): string =>
  walk === "quads" ? value : `select(vec4f(0.0), ${value}, r < vec4u(s.rows))`;

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
 * computes the vec4f to be stored in `out` from quads of the big operands. In the walk by quads each invocation handles
 * s.rows / s.chunks rows; on CPU adapters neighbouring ones, and many, because starting an invocation takes as long as a few.
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
    : [`${linearMain()}${partialHead.quads}`, "var r = k; r < s.rows; r += s.chunks"];
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

const cpuWalk = { size: 8, rows: 128 };

const isCpu = ({ hardware }: ProgramContext): boolean => hardware?.class === "software";

const gathered = (name: string, index: (lane: string) => string): string =>
  `vec4f(${["x", "y", "z", "w"].map((lane) => `at_${name}(${index(lane)})`).join(", ")})`;
