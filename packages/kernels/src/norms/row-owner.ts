import type { ProgramContext, Workgroups } from "@halfstep/device";
import { isCpu } from "../cpu-adapter.js";
import { linearMain, linearWorkgroups } from "../kernel.js";
import { type KeptUnit, keptRow } from "../wgsl/kept-row.js";
import {
  type Computed,
  loadingUnit,
  type Quad,
  storeUnit,
  type UnitQuads,
} from "../wgsl/quad-units.js";
import { type Team, team } from "../wgsl/team.js";
import type { NormShape } from "./shape.js";

/**
 * The owner that reduces a row and then stores it, in one launch: an invocation for `short` rows, a team for `few` rows, and for
 * `middling` and `long` ones the faster of the two on the device.
 */
export type RowOwner = "short" | "middling" | "long" | "few";

/** The owner of the rows of a shape, a choice by shape alone; undefined where groups are not rows of whole quads. */
export function rowOwner({ batch, pixels, groups, width }: NormShape): RowOwner | undefined {
  if (pixels !== 1 || groups !== 1 || width % 4 !== 0) return undefined;
  if (width < 64) return "short";
  if (batch < 64) return "few";
  return width < 512 ? "middling" : "long";
}

/** Whether rows of whole quads are also rows of whole pairs of quads, which a program moves where their storage has 16 bits. */
export const isInPairs = (width: number): boolean => width % 8 === 0;

/** The parts of a program over rows, in WGSL. */
export interface RowsCode {
  /**
   * The body of a function from `row`, `lane` and `lanes` to a vec4f, the numbers of a row, whose `steps` units of so many quads begin at
   * unit `base`. `total` is the sum of a vec4f's elements over all lanes, which share a {@link quadLoop}.
   */
  numbers(total: (value: string) => string, quads: UnitQuads): string;
  /** Statements before those of `stored`, for the quad of a row with this index: values that rows share. */
  parameters(index: string): string;
  /** What is stored in a quad of a row of `numbers`. */
  stored(quad: Quad): Computed;
  /** The same for a row that a team keeps in registers. */
  kept(units: readonly KeptUnit[], whole: Team): KeptCode;
  /** The operand in which it is stored. */
  readonly out: string;
}

/** The code of a row `row` that a team keeps in registers. */
interface KeptCode {
  /** Statements that declare `numbers`. */
  readonly numbers: string;
  /** What is stored in one of its quads, with the parameters. */
  stored(quad: Quad): Computed;
}

/** Runs `body` for each quad, or each unit, `c` of the row that the invocation processes. */
export const quadLoop = (body: string): string =>
  `for (var c = lane; c < steps; c += lanes) {\n${body}  }\n`;

/** A program over `s.batch` rows of `s.width` elements. */
export function rowsProgram(
  owner: RowOwner,
  code: RowsCode,
  context: ProgramContext,
  quads: UnitQuads = 1,
): string {
  const { whole, rows } = divisionOf(owner, context);
  const total = whole?.total ?? across;
  const keeps = whole && !isCpu(context);
  const each = (of: (r: number) => string): string =>
    Array.from({ length: rows }, (_, r) => of(r)).join("");
  const head = whole
    ? `@compute @workgroup_size(${whole.lanes})
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
  let index = group.x + group.y * groups.x;
  let lanes = ${whole.lanes}u;
`
    : `${linearMain(sizeAlone(context))}
  let lane = 0u;
  let lanes = 1u;
`;
  // The last team may have fewer rows.
  const row = (r: number): string => (rows === 1 ? "index" : `first + ${r}u`);
  const known = (r: number): string => (rows === 1 ? "index" : `min(${row(r)}, s.batch - 1u)`);
  const steps = `  let steps = s.width / ${4 * quads}u;\n`;
  const base = isCpu(context) ? "" : "  let base = index * steps;\n";
  // Rows that share parameters move quads: the quads of a pair have parameters of their own.
  const again = `${each((r) => `  let numbers_${r} = numbers_of(${known(r)}, lane, lanes);\n`)}  ${quadLoop(
    `${quads === 1 ? code.parameters("c") : ""}${each(
      (r) => `    ${rows === 1 ? "" : `if (${row(r)} < s.batch) `}{
      let q = (${row(r)}) * steps + c;
      let numbers = numbers_${r};
${loadingUnit(
  quads,
  "c",
  (x) => `load_${x}(q)`,
  (unit) => storeUnit(unit, "q", code.out, quads === 1 ? code.stored : withParameters(code)),
)}    }
`,
    )}`,
  )}`;
  return `${whole?.declarations ?? ""}${keeps ? whole.firstDeclaration : ""}
fn numbers_of(row: u32, lane: u32, lanes: u32) -> vec4f {
${steps}  let base = row * steps;
${code.numbers(total, quads)}}
${head}  let first = index * ${rows}u;
  if (first >= s.batch) { return; }
${steps}${base}${keeps ? keptOrAgain(code, whole, quads, again) : again}}
`;
}

/** What is stored in a quad, with the parameters. */
export const withParameters =
  ({ parameters, stored }: Pick<RowsCode, "parameters" | "stored">) =>
  (quad: Quad): Computed => {
    const { before, value } = stored(quad);
    return { before: parameters(quad.index) + before, value };
  };

/** The statements on a row that the registers of a team hold, and `again` for longer ones. */
function keptOrAgain(code: RowsCode, whole: Team, quads: UnitQuads, again: string): string {
  const kept = (units: readonly KeptUnit[]): string => {
    const { numbers, stored } = code.kept(units, whole);
    const stores = units.map(
      ({ inside, place, quads: unit }) => `    if (${inside}) {
${storeUnit(unit, place, code.out, stored)}    }
`,
    );
    return `    let row = index;
${numbers}${stores.join("")}`;
  };
  return keptRow(whole.lanes, quads, "steps", kept, again);
}

export const rowsUseSubgroups = (owner: RowOwner, context: ProgramContext): boolean =>
  divisionOf(owner, context).whole?.usesSubgroups ?? false;

/** Workgroups of a {@link rowsProgram}. */
export function rowsWorkgroups(
  owner: RowOwner,
  batch: number,
  context: ProgramContext,
): Workgroups {
  const { whole, rows } = divisionOf(owner, context);
  return linearWorkgroups(Math.ceil(batch / rows), whole ? 1 : sizeAlone(context));
}

/**
 * The team that owns `rows` rows, or an invocation that owns one. On CPUs uniform loads are fastest, as those of parameters are where
 * each invocation has its own row. Contiguous loads are next, as those of a long row by a team; a team takes four rows at a time and
 * loads parameters once for them. On GPUs, few rows keep a device busy only with many invocations each.
 */
function divisionOf(
  owner: RowOwner,
  context: ProgramContext,
): { readonly whole: Team | undefined; readonly rows: number } {
  const alone = { whole: undefined, rows: 1 };
  const { subgroupSize } = context;
  if (owner === "short") return alone;
  if (!isCpu(context)) {
    const lanes = owner === "few" ? 256 : subgroupSize || 64;
    return { whole: team(lanes, context), rows: 1 };
  }
  if (owner === "middling" || subgroupSize === 0) return alone;
  return { whole: team(subgroupSize, context), rows: owner === "long" ? 4 : 1 };
}

const sizeAlone = (context: ProgramContext): number => (isCpu(context) ? 8 : 64);

const across = (v: string): string => `((${v}.x + ${v}.y) + (${v}.z + ${v}.w))`;

/** A kernel for each owner and each set of optional operands, made on first use. */
export function byOwner<P extends object, K>(make: (owner: RowOwner, parts: P) => K) {
  const made = new Map<string, K>();
  return (owner: RowOwner, parts: P): K => {
    const key = ownerVariant(owner, parts);
    const known = made.get(key) ?? make(owner, parts);
    made.set(key, known);
    return known;
  };
}

export const ownerVariant = (owner: RowOwner, parts: object): string =>
  [owner, ...Object.entries(parts).flatMap(([name, isThere]) => (isThere ? [name] : []))].join(",");
