import type { ProgramContext, Workgroups } from "@halfstep/device";
import { isCpu } from "../cpu-adapter.js";
import { linearWorkgroups } from "../kernel.js";
import type { Epilogue } from "../woven-definition.js";
import { noRowSums, type RowSumsSupport } from "./row-sums.js";
import { storeTile } from "./store.js";

/**
 * Tiles, which matrix products and convolutions share: an invocation keeps `rows` × `width` results in registers and adds
 * products of four k at a time to them.
 *
 * Where subgroups have one size, a workgroup is one subgroup, whose lanes lie side by side along the columns: each lane loads
 * a part of the left operand, and the others get it by a broadcast from a constant lane. Elsewhere every invocation loads all
 * its operands. It uses no workgroup memory and no barriers, which are slow on CPU adapters.
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
  /** WGSL expression (u32): the index of the part, among the tile's `rows` parts, in the register of this invocation. */
  readonly part: string;
}

/**
 * The operands of a tiled product: WGSL that loads them and loops over k. It may use `row` (the first row of the tile),
 * `column` (this invocation's columns are `column * width …`), `slice` (u32) and the scalars `s`.
 */
export interface Contraction {
  /**
   * The four elements of a left register: "k": four k of row `row + part`; "rows": the four rows from `row + 4 * (part % (rows
   * / 4))` on at the step's k number `part / (rows / 4)`.
   */
  readonly along: "k" | "rows";
  /** To also store the sums of the left operand's rows, where it lies along "rows": see row-sums.ts. */
  readonly rowSums?: RowSumsSupport | undefined;
  /** Functions that `loops` calls. */
  readonly functions?: string;
  /** WGSL (u32): the number of tiles in a column that are computed before those to their right. Default: 1. */
  readonly band?: string;
  /**
   * Statements that declare the tile's registers and `b0 … b3` (`vec4f` or `vec2f`: the right operand's columns at four
   * successive k) in the innermost of their loops, followed there by `tile.accumulate`.
   */
  loops(tile: Tile): string;
}

/** The tile that a contraction gets. */
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
  { along, rowSums, functions = "", band = "1u", loops }: Contraction,
  context: ProgramContext,
  epilogue?: Epilogue,
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
  const inLane = (value: string, lane: number): string => ofLane(context, value, lane);
  const partValue = (part: number): string =>
    lanes > 0 ? inLane(`a${Math.floor(part / lanes)}`, part % lanes) : `a${part}`;
  const each = (line: (i: number) => string): string =>
    Array.from({ length: height }, (_, i) => line(i)).join("");
  const accumulate =
    along === "k" ? addRows(height, vector, partValue) : addQuadsOfRows(height, vector, partValue);
  const names = registers.map(({ name }) => name);
  const sums = !rowSums
    ? noRowSums
    : lanes > 0
      ? rowSums.ofLanes({ rows: height, lanes, registers: names }, inLane, "inside < high")
      : rowSums.ofInvocation(height, partValue);
  const store = storeTile(height, width, epilogue);
  return `${functions}${rowSums?.store ?? ""}${store.functions}
${lanes > 0 ? subgroupMain(lanes, height, band) : directMain(height)}
${each((i) => `  var sum${i} = ${vector}();\n`)}
${sums.before}${loops({ rows: height, registers, accumulate: sums.each + accumulate })}
${sums.after}  if (column >= s.columns) { return; }
${store.statements}}
`;
}

/**
 * The value of a register in one lane. llvmpipe shuffles in one instruction and broadcasts in three, because it masks inactive
 * lanes, which takes a tenth of a product's time. On hardware a broadcast from a constant lane is cheaper.
 */
const ofLane = (context: ProgramContext, value: string, lane: number): string =>
  `${isCpu(context) ? "subgroupShuffle" : "subgroupBroadcast"}(${value}, ${lane}u)`;

/** Rows of an invocation where there are no subgroups: each loads its left operand itself, so it keeps fewer. */
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

const subgroupMain = (lanes: number, rows: number, band: string): string =>
  `@compute @workgroup_size(${lanes})
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(subgroup_invocation_id) lane: u32,
) {
  let tile = group.x + group.y * groups.x;
  let across = (s.columns + ${lanes - 1}u) / ${lanes}u;
  let down = (s.m + ${rows - 1}u) / ${rows}u;
  let slice = tile / (across * down);
  if (slice >= s.slices) { return; }
  let place = tile % (across * down);
  let band = ${band};
  let above = place / (band * across) * band;
  let high = min(band, down - above);
  let inside = place - above * across;
  let column = inside / high * ${lanes}u + lane;
  let row = (above + inside % high) * ${rows}u;
`;

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
