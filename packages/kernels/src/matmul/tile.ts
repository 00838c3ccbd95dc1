import { bytesPerElement, type ProgramContext, type Workgroups } from "@halfstep/device";
import type { EpilogueCode } from "../epilogue.js";
import { linearWorkgroups } from "../kernel.js";
import { storeQuad, storeTile } from "./store.js";

/**
 * The part that matrix product and convolution share: an invocation holds `rows` × `width` results in registers and adds
 * products of four k at a time to them.
 *
 * Where subgroups have one size, a workgroup is one subgroup, whose lanes lie side by side along the columns: each lane
 * loads a part of the left operand, and the others get it by a broadcast from a constant lane. Elsewhere every invocation
 * loads all that it needs. No workgroup memory and no barrier: both are slow on CPU adapters.
 */
export interface TileShape {
  /** Rows of a subgroup's tile, a multiple of 8. */
  readonly rows: 8 | 16 | 32;
  /** Columns of one invocation. */
  readonly width: 2 | 4;
}

/** A register `vec4f` for a part of the left operand. */
export interface Register {
  readonly name: string;
  /** WGSL expression (u32): which of the tile's `rows` parts the register of this invocation holds. */
  readonly part: string;
}

/**
 * What is multiplied: WGSL that loads the operands and loops over k. In its scope are `row` (the first row of the tile),
 * `column` (this invocation's columns are `column * width …`), `slice` (u32) and the scalars `s`.
 */
export interface Contraction {
  /**
   * What the four elements of a left register are: four k of row `row + part`, or, "rows", the four rows from
   * `row + 4 * (part % (rows / 4))` on at the step's k number `part / (rows / 4)`.
   */
  readonly along: "k" | "rows";
  /** Functions that `loops` calls. */
  readonly functions?: string;
  /** Where the next tile lies: in the same rows, or (in bands of rows) in the same columns. Default "columns". */
  readonly next?: "columns" | "rows";
  /**
   * Statements that declare the tile's registers and `b0 … b3` (`vec4f` or `vec2f`: the right operand's columns at four
   * successive k) in the innermost of their loops, followed there by `tile.accumulate`.
   */
  loops(tile: Tile): string;
}

/** A tile as its contraction sees it. */
export interface Tile {
  readonly rows: number;
  readonly registers: readonly Register[];
  readonly accumulate: string;
}

/**
 * The entry point of a tiled product. Needs the scalars `m`, `columns` (groups of `width` columns) and `slices` (products
 * side by side: batch entries, or parts of k), and a binding `out` of unit `width`, [slices, m, columns * width].
 */
export function tileProgram(
  { rows, width }: TileShape,
  { along, functions = "", next = "columns", loops }: Contraction,
  context: ProgramContext,
  epilogue?: EpilogueCode,
): string {
  const lanes = context.subgroupSize;
  const height = lanes > 0 ? rows : directRows;
  const vector = `vec${width}f`;
  const registers =
    lanes > 0
      ? Array.from({ length: Math.ceil(height / lanes) }, (_, g) => ({
          name: `a${g}`,
          part: lanes > height ? `min(lane, ${height - 1}u)` : `(lane + ${g * lanes}u)`,
        }))
      : Array.from({ length: height }, (_, part) => ({ name: `a${part}`, part: `${part}u` }));
  const partValue = (part: number): string =>
    lanes > 0 ? `subgroupBroadcast(a${Math.floor(part / lanes)}, ${part % lanes}u)` : `a${part}`;
  const each = (line: (i: number) => string): string =>
    Array.from({ length: height }, (_, i) => line(i)).join("");
  if (isTall({ rows, width }, along, context))
    return tallProgram(registers, { along, functions, next, loops }, epilogue);
  const accumulate =
    along === "k" ? addRows(height, vector, partValue) : addQuadsOfRows(height, vector, partValue);
  const store = storeTile(height, width, epilogue);
  return `${functions}${store.functions}
${lanes > 0 ? subgroupMain(lanes, height, next) : directMain(height)}
${each((i) => `  var sum${i} = ${vector}();\n`)}
${loops({ rows: height, registers, accumulate })}
  if (column >= s.columns) { return; }
${store.statements}}
`;
}

/**
 * Where a subgroup of eight has sixteen columns, every lane may compute all of them for rows of its own, so that it is the right
 * operand that is broadcast: half as often. Sums are added up in the same order. Measured on software adapters: a tenth faster,
 * but a tenth slower where the left operand is float32 and lies along k.
 */
const isTall = (
  { rows, width }: TileShape,
  along: Contraction["along"],
  { subgroupSize, bindings: [left] }: ProgramContext,
): boolean =>
  width === 2 &&
  subgroupSize === 8 &&
  rows === 32 &&
  (along === "rows" || (left !== undefined && bytesPerElement(left.dtype) < 4));

function tallProgram(
  registers: readonly Register[],
  { along, functions = "", next = "columns", loops }: Contraction,
  epilogue: EpilogueCode | undefined,
): string {
  const rows = 32;
  /** Of the four rows of a lane, which row of the tile is number i, and what its left operand is at a step's k number u. */
  const rowOf = (i: string): string => (along === "k" ? `lane + ${i} * 8u` : `lane * 4u + ${i}`);
  const leftOf = (i: number, u: number): string =>
    along === "k" ? `a${i}.${"xyzw"[u]}` : `a${u}.${"xyzw"[i]}`;
  const own = [0, 1, 2, 3];
  let accumulate = "";
  for (let u = 0; u < 4; u++)
    for (const q of own) {
      const [first, second] = [2 * q, 2 * q + 1].map((lane) =>
        ["x", "y"].map((member) => `subgroupBroadcast(b${u}.${member}, ${lane}u)`).join(", "),
      );
      accumulate += `{ let c = vec4f(${first}, ${second});\n`;
      for (const i of own)
        accumulate += `sum${i}_${q} = fma(vec4f(${leftOf(i, u)}), c, sum${i}_${q});\n`;
      accumulate += "}\n";
    }
  const sums = own.flatMap((i) => own.map((q) => `sum${i}_${q}`));
  return `${functions}${storeQuad(2, epilogue)}
${subgroupMain(8, rows, next)}
${sums.map((sum) => `  var ${sum} = vec4f();\n`).join("")}
${loops({ rows, registers, accumulate })}
  var sums = array<vec4f, ${sums.length}>(${sums.join(", ")});
  let quad = (column - lane) / 2u;
  // A count from what is not constant, which no driver writes out.
  for (var at = slice * 0u; at < ${sums.length}u; at++) {
    let i = at / 4u;
    store_quad(slice, row + ${rowOf("i")}, quad + at % 4u, sums[at]);
  }
}
`;
}

/** Rows of an invocation where there are no subgroups: each loads its left operand itself, so it holds fewer. */
const directRows = 8;
const directSize = 64;

/** Workgroups of a {@link tileProgram}. */
export function tileWorkgroups(
  { rows }: TileShape,
  scalars: Readonly<Record<string, number>>,
  { subgroupSize }: ProgramContext,
): Workgroups {
  const { m, columns, slices } = scalars as Record<"m" | "columns" | "slices", number>;
  if (subgroupSize === 0)
    return linearWorkgroups(columns * Math.ceil(m / directRows) * slices, directSize);
  return linearWorkgroups(Math.ceil(columns / subgroupSize) * Math.ceil(m / rows) * slices, 1);
}

const subgroupMain = (lanes: number, rows: number, next: "columns" | "rows"): string =>
  `@compute @workgroup_size(${lanes})
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(subgroup_invocation_id) lane: u32,
) {
  let tile = group.x + group.y * groups.x;
  let across = (s.columns + ${lanes - 1}u) / ${lanes}u;
  let down = (s.m + ${rows - 1}u) / ${rows}u;
${placeOfTile[next](lanes, rows)}  let slice = tile / (across * down);
  if (slice >= s.slices) { return; }
`;

/** Rows of tiles in a band, over which the columns of the right factor stay in the cache. */
const band = 32;

const placeOfTile = {
  columns: (lanes: number, rows: number) => `  let column = tile % across * ${lanes}u + lane;
  let row = tile / across % down * ${rows}u;
`,
  rows: (lanes: number, rows: number) => `  let place = tile % (across * down);
  let above = place / (${band}u * across) * ${band}u;
  let high = min(${band}u, down - above);
  let inside = place - above * across;
  let column = inside / high * ${lanes}u + lane;
  let row = (above + inside % high) * ${rows}u;
`,
};

const directMain = (rows: number): string => `@compute @workgroup_size(${directSize})
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) local: u32,
) {
  let tile = (group.x + group.y * groups.x) * ${directSize}u + local;
  let down = (s.m + ${rows - 1}u) / ${rows}u;
  let column = tile % s.columns;
  let row = tile / s.columns % down * ${rows}u;
  let slice = tile / (s.columns * down);
  if (slice >= s.slices) { return; }
`;

type PartValue = (part: number) => string;

function addRows(rows: number, vector: string, partValue: PartValue): string {
  let code = "";
  for (let i = 0; i < rows; i++)
    code += `{ let v = ${partValue(i)};
sum${i} = ${multiplyAdd(vector, ["v.x", "v.y", "v.z", "v.w"], `sum${i}`)}; }
`;
  return code;
}

function addQuadsOfRows(rows: number, vector: string, partValue: PartValue): string {
  const quads = rows / 4;
  let code = "";
  for (let q = 0; q < quads; q++) {
    code += "{";
    for (let u = 0; u < 4; u++) code += ` let v${u} = ${partValue(u * quads + q)};`;
    code += "\n";
    for (const [e, member] of ["x", "y", "z", "w"].entries()) {
      const sum = `sum${q * 4 + e}`;
      const factors = [0, 1, 2, 3].map((u) => `v${u}.${member}`);
      code += `${sum} = ${multiplyAdd(vector, factors, sum)};\n`;
    }
    code += "}\n";
  }
  return code;
}

const multiplyAdd = (vector: string, factors: readonly string[], sum: string): string =>
  factors.reduce((total, factor, u) => `fma(${vector}(${factor}), b${u}, ${total})`, sum);
