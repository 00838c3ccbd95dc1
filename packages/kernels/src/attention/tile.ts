import type { ProgramContext, Workgroups } from "@halfstep/device";
import { linearWorkgroups } from "../kernel.js";

/**
 * Tiles of attention's programs. Where subgroups have one size, a workgroup is one subgroup that computes `rows` rows: a tile of scores
 * has four columns a lane, and the quads of a result are distributed over the lanes with a stride. Lanes exchange values by shuffles,
 * without workgroup memory and barriers, which are slow on CPU adapters. Elsewhere every invocation has a tile of its own.
 */
export interface AttentionTile {
  /** Lanes of a subgroup; 1 where there are no subgroups. */
  readonly lanes: number;
  readonly rows: number;
}

/** How lanes share the quads of a result's row. */
interface Columns {
  /** Lanes side by side along a row; the others take part of the sum. */
  readonly across: number;
  /** Quads of one lane. */
  readonly each: number;
}

/**
 * Registers of four numbers that a lane may keep from one step to the next, and rows of a lane without subgroups. More would not be
 * faster on a CPU adapter, and take its compiler several seconds.
 */
const maxRegisters = 48;
const maxRowsAlone = 2;

/** The tile of a program with so many tiles of scores, and results of so many quads a row. */
export function attentionTile(
  { subgroupSize }: ProgramContext,
  scores: number,
  results: readonly number[],
): AttentionTile {
  const lanes = Math.max(1, subgroupSize);
  const registers = results.reduce((sum, quads) => sum + columnsOf(lanes, quads).each, scores);
  const sizes = [16, 8, 4, 2, 1].filter((rows) => lanes > 1 || rows <= maxRowsAlone);
  return { lanes, rows: sizes.find((rows) => rows * registers <= maxRegisters) ?? 1 };
}

function columnsOf(lanes: number, quads: number): Columns {
  const across = Math.min(lanes, 2 ** Math.ceil(Math.log2(quads)));
  return { across, each: Math.ceil(quads / across) };
}

/** Invocations of a workgroup where there are no subgroups. */
const aloneSize = 64;

export const tileWorkgroups = (
  { lanes, rows }: AttentionTile,
  entries: number,
  length: number,
): Workgroups => linearWorkgroups(entries * Math.ceil(length / rows), lanes > 1 ? 1 : aloneSize);

/**
 * The head of an entry point: `lane`, `entry`, which is given in terms of `tile` and `tiles`, and the first `row` of the tile among the
 * `length` rows of its entry.
 */
export const tileMain = ({ lanes, rows }: AttentionTile, length: string, entry: string): string =>
  `@compute @workgroup_size(${lanes > 1 ? lanes : aloneSize})
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  ${lanes > 1 ? "@builtin(subgroup_invocation_id) lane" : "@builtin(local_invocation_index) local"}: u32,
) {
  let tile = ${lanes > 1 ? "group.x + group.y * groups.x" : `(group.x + group.y * groups.x) * ${aloneSize}u + local`};
  let tiles = (${length} + ${rows - 1}u) / ${rows}u;
  let entry = ${entry};
  let row = tile % tiles * ${rows}u;
  if (entry >= s.entries) { return; }
${lanes > 1 ? "" : "  let lane = 0u;\n"}`;

/** `fn quad_x(start: u32, c: u32) -> vec4f`: quad c of the row of `x` at `start`, with zeros behind its last element. */
export const rowQuads = (x: string, size: string, isAligned: boolean): string =>
  isAligned
    ? `fn quad_${x}(start: u32, c: u32) -> vec4f { return load_${x}(start + c); }\n`
    : `fn part_${x}(start: u32, c: u32) -> f32 { return select(0.0, at_${x}(start + c), c < ${size}); }
fn quad_${x}(start: u32, c: u32) -> vec4f {
  return vec4f(part_${x}(start, c * 4u), part_${x}(start, c * 4u + 1u), part_${x}(start, c * 4u + 2u), part_${x}(start, c * 4u + 3u));
}
`;

/** WGSL: the start of a token of an operand's entry. */
export const tokenOf = (x: string, token: string): string =>
  `${x}_base + (${token}) * s.${x}_token`;

export const each = (count: number, line: (i: number) => string): string =>
  Array.from({ length: count }, (_, i) => line(i)).join("");

const members = ["x", "y", "z", "w"] as const;

/** Declares registers for one value of each row of a tile: `value`, an expression of the row `part`. */
export function rowRegisters(
  { lanes, rows }: AttentionTile,
  name: string,
  value: (part: string) => string,
): string {
  if (lanes === 1) return each(rows, (r) => `    let ${name}${r} = ${value(`${r}u`)};\n`);
  return each(Math.ceil(rows / lanes), (g) => {
    const part = lanes > rows ? `min(lane, ${rows - 1}u)` : `(lane + ${g * lanes}u)`;
    return `    let ${name}${g} = ${value(part)};\n`;
  });
}

/** The value of row r in a register of {@link rowRegisters}, on all lanes. */
export const ofRow = ({ lanes }: AttentionTile, name: string, r: number): string =>
  lanes === 1 ? `${name}${r}` : `subgroupBroadcast(${name}${Math.floor(r / lanes)}, ${r % lanes}u)`;

/** Declares `x_at0 …`, the starts of an operand's rows for the rows of the tile, clamped to `length`. */
export const rowPositions = (tile: AttentionTile, x: string, length: string): string =>
  rowRegisters(tile, `${x}_at`, (part) => tokenOf(x, `min(row + ${part}, ${length} - 1u)`));

/**
 * Declares `name0 …`, a vec4f a row: products of the row with the lane's four columns, which are the tokens `column0 … column3` of
 * `columns`. Needs {@link rowPositions} of `rows`.
 */
export function scoreTile(
  tile: AttentionTile,
  name: string,
  rows: string,
  columns: string,
  size: string,
): string {
  return `${each(tile.rows, (r) => `    var ${name}${r} = vec4f();\n`)}${each(
    4,
    (u) => `    let ${columns}_at${u} = ${tokenOf(columns, `column${u}`)};\n`,
  )}    for (var c = 0u; c < ((${size} + 3u) >> 2u); c++) {
${each(4, (u) => `    let d${u} = quad_${columns}(${columns}_at${u}, c);\n`)}${each(
  4,
  (u) =>
    `    let b${u} = vec4f(d0.${members[u]}, d1.${members[u]}, d2.${members[u]}, d3.${members[u]});\n`,
)}${
  tile.lanes === 1
    ? each(tile.rows, (r) => `    let a${r} = quad_${rows}(${rows}_at${r}, c);\n`)
    : each(
        Math.ceil(tile.rows / tile.lanes),
        (g) => `    let a${g} = quad_${rows}(${rows}_at${g}, c);\n`,
      )
}${each(
  tile.rows,
  (r) => `    { let a = ${ofRow(tile, "a", r)};
    ${name}${r} = fma(vec4f(a.x), b0, fma(vec4f(a.y), b1, fma(vec4f(a.z), b2, fma(vec4f(a.w), b3, ${name}${r})))); }
`,
)}    }
`;
}

/** A result of a tile's rows: Σ weights · values over the columns, in registers `name…`. */
export interface ResultTile {
  readonly name: string;
  /** Of a row. */
  readonly quads: number;
  /** WGSL: elements of a row. */
  readonly size: "s.size" | "s.width";
  /** A tile of scores, of which every lane holds four columns a row, and the operand whose rows they multiply. */
  readonly weights: string;
  readonly values: string;
  /** The operand that takes row r of the result; this expression maps each of its sums. */
  readonly out: string;
  finished(sum: string, r: number): string;
}

const sums = (
  tile: AttentionTile,
  { name, quads }: ResultTile,
  line: (sum: string, i: number, r: number) => string,
): string =>
  each(tile.rows, (r) =>
    each(columnsOf(tile.lanes, quads).each, (i) => line(`${name}${r}_${i}`, i, r)),
  );

/** Declares the sums of a result. */
export const resultTile = (tile: AttentionTile, result: ResultTile): string =>
  sums(tile, result, (sum) => `  var ${sum} = vec4f();\n`);

/** Multiplies row r of a result. */
export const scaleRow = (
  tile: AttentionTile,
  { name, quads }: ResultTile,
  r: number,
  factor: string,
): string => each(columnsOf(tile.lanes, quads).each, (i) => `${name}${r}_${i} *= ${factor}; `);

/** Adds to a result its weights times the rows of its values for the tile's columns, from `first_column` on and clamped to `last`. */
export function accumulate(tile: AttentionTile, result: ResultTile, last: string): string {
  const { lanes, rows } = tile;
  const { name, weights, values } = result;
  const { across, each: own } = columnsOf(lanes, result.quads);
  const groups = lanes / across;
  const loads = each(own, (i) =>
    each(
      4,
      (u) =>
        `    let b${i}_${u} = quad_${values}(${tokenOf(values, `min(first + ${u}u, ${last})`)}, min(lane % ${across}u + ${i * across}u, quads - 1u));\n`,
    ),
  );
  const products = each(
    rows,
    (
      r,
    ) => `    { let w = ${lanes === 1 ? `${weights}${r}` : `subgroupShuffle(${weights}${r}, holder)`};
${each(own, (i) => {
  const sum = `${name}${r}_${i}`;
  return `    ${sum} = fma(vec4f(w.x), b${i}_0, fma(vec4f(w.y), b${i}_1, fma(vec4f(w.z), b${i}_2, fma(vec4f(w.w), b${i}_3, ${sum}))));\n`;
})}    }
`,
  );
  const quads = `    let quads = (${result.size} + 3u) >> 2u;\n`;
  if (lanes === 1)
    return `    {\n${quads}    let first = first_column;\n${loads}${products}    }\n`;
  // The loop's count is uniform, as shuffles require; with few columns each group of lanes takes rows of its own.
  return `    for (var step = 0u; step < ${lanes / groups}u; step++) {
${quads}    let holder = step * ${groups}u + lane / ${across}u;
    let first = first_column + holder * 4u;
${loads}${products}    }
`;
}

/**
 * Stores the rows of a result in a binding; rows behind `length` are left out. It is a loop, because programs with many stores take
 * long to compile on CPU adapters.
 */
export function storeResult(
  tile: AttentionTile,
  result: ResultTile,
  binding: string,
  length: string,
): string {
  const { lanes, rows } = tile;
  const { across, each: own } = columnsOf(lanes, result.quads);
  let code = "";
  for (let far = across; far < lanes; far *= 2)
    code += sums(tile, result, (sum) => `  ${sum} += subgroupShuffleXor(${sum}, ${far}u);\n`);
  const values = Array.from({ length: rows * own }, (_, n) => {
    const [r, i] = [Math.floor(n / own), n % own];
    return result.finished(`${result.name}${r}_${i}`, r);
  });
  return `${code}  if (lane < ${across}u) {
    var values = array<vec4f, ${rows * own}>(${values.join(", ")});
    let quads = (${result.size} + 3u) >> 2u;
    let count = min(${rows}u, ${length} - row) * ${own}u;
    for (var n = 0u; n < count; n++) {
      let c = lane + n % ${own}u * ${across}u;
      if (c < quads) { store_${binding}(${tokenOf(result.out, `row + n / ${own}u`)} + c, values[n]); }
    }
  }
`;
}

/** Reduces `name` over all lanes, in a fixed order. */
export function overLanes({ lanes }: AttentionTile, name: string, fold: "max" | "sum"): string {
  let code = "";
  for (let far = 1; far < lanes; far *= 2) {
    const other = `subgroupShuffleXor(${name}, ${far}u)`;
    code += `${name} = ${fold === "max" ? `max(${name}, ${other})` : `${name} + ${other}`}; `;
  }
  return code;
}
