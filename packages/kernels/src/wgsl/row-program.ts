import type { ProgramContext } from "@halfstep/device";
import { isCpu } from "../cpu-adapter.js";
import { linearMain, linearWorkgroups } from "../kernel.js";
import { type KeptUnit, keptRow } from "./kept-row.js";
import {
  type Computed,
  eachQuad,
  loadingUnit,
  type Quad,
  storeUnit,
  type UnitQuads,
} from "./quad-units.js";
import { type Team, team } from "./team.js";

/**
 * How a program over [rows, columns] that needs whole rows divides them. With columns in whole quads an owner has one row. Otherwise
 * it has four rows, which together are whole quads of the flat buffer, and each lane of a vec4f reduces a row of its own. Rows of whole
 * pairs of quads move pairs where their storage has 16 bits, and are as those of quads elsewhere.
 */
export type RowProgramWalk = "pairs" | "quads" | "lanes";

export function rowProgramWalk(columns: number): RowProgramWalk {
  if (columns % 8 === 0) return "pairs";
  return columns % 4 === 0 ? "quads" : "lanes";
}

/** A value for each walk, such as a kernel. */
export const byRowProgramWalk = <T>(
  make: (walk: RowProgramWalk) => T,
): Readonly<Record<RowProgramWalk, T>> => ({
  pairs: make("pairs"),
  quads: make("quads"),
  lanes: make("lanes"),
});

/** Whether a program over rows in this walk streams a binding in pairs: one of these operands. */
export const streamsRows =
  (walk: RowProgramWalk, ...operands: readonly string[]) =>
  (_: number, name: string): boolean =>
    walk === "pairs" && operands.includes(name);

/**
 * The owner of one row or four, by the length of the rows: an invocation for `short` ones, and a team, whose lanes read neighbouring
 * elements, for `long` and `vast` ones. Of `middling` rows it is an invocation on a CPU adapter, and a team elsewhere.
 */
export type RowOwner = "short" | "middling" | "long" | "vast";

/** The owner of a row of so many columns. The choice depends on the shape only. */
export function rowOwner(columns: number): RowOwner {
  if (columns < 32) return "short";
  if (columns < 256) return "middling";
  return columns < 4096 ? "long" : "vast";
}

/** A value for each owner, such as a kernel. */
export const byRowOwner = <T>(make: (owner: RowOwner) => T): Readonly<Record<RowOwner, T>> => ({
  short: make("short"),
  middling: make("middling"),
  long: make("long"),
  vast: make("vast"),
});

/**
 * The team that owns rows on a device; undefined where the owner is an invocation. A batch has few vast rows: they get the largest
 * workgroup that every device allows, because one subgroup for each would leave most of a GPU idle.
 */
function teamOf(owner: RowOwner, context: ProgramContext): Team | undefined {
  const { subgroupSize } = context;
  if (owner === "short") return undefined;
  if (isCpu(context))
    return owner === "middling" || subgroupSize === 0 ? undefined : team(subgroupSize, context);
  return team(owner === "vast" ? 256 : subgroupSize || 64, context);
}

/** Whether the program over rows of an owner uses subgroup built-ins. */
export const rowsUseSubgroups = (owner: RowOwner, context: ProgramContext): boolean =>
  teamOf(owner, context)?.usesSubgroups ?? false;

/** WGSL around the rows of an owner, whose `index` counts owners. */
interface RowLoops {
  readonly main: string;
  /** The loop over each `j` of an invocation's share. */
  readonly each: string;
  /** Combines the results of all shares. */
  together(fold: RowStatistic["fold"], own: string): string;
  readonly isOne: string;
}

function rowLoops(owners: Team | undefined): RowLoops {
  if (!owners)
    return {
      main: linearMain(),
      each: "for (var j = 0u; j < count; j++)",
      together: (_, own) => own,
      isOne: "true",
    };
  const { lanes, usesSubgroups } = owners;
  const lane = usesSubgroups ? "subgroup_invocation_id" : "local_invocation_index";
  return {
    main: `${usesSubgroups ? "" : owners.declarations}@compute @workgroup_size(${lanes})
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(${lane}) lane: u32) {
  let index = group.x + group.y * groups.x;
`,
    each: `for (var j = lane; j < count; j += ${lanes}u)`,
    together: (fold, own) => (fold === "max" ? owners.largest(own) : owners.sum(own)),
    isOne: "lane == 0u",
  };
}

/** A number for each row, reduced from its elements. */
export interface RowStatistic {
  readonly name: string;
  readonly fold: "max" | "sum";
  /** vec4f, from the values in `load` and the statistics before this one; `j` counts quads, or elements in the walk by lanes. */
  value(load: (name: string) => string, j: string): string;
}

/**
 * An entry point that computes statistics of each row and stores `result`, a vec4f, in every element of `out`. In `result` the
 * statistics are vec4f, and `row` and `column` (vec4u) are the indices of each lane's element. It requires the scalars `s.rows`
 * and `s.columns`.
 */
export function rowProgram(
  walk: RowProgramWalk,
  statistics: readonly RowStatistic[],
  result: (load: (name: string) => string) => string,
  out: string,
  owner: RowOwner,
  context: ProgramContext,
  quads: UnitQuads = 1,
): string {
  const owners = teamOf(owner, context);
  const loops = rowLoops(owners);
  if (walk !== "lanes") {
    const stored = (quad: Quad) => ({
      before: `    let column = vec4u(${quad.index} * 4u) + vec4u(0u, 1u, 2u, 3u);\n    `,
      value: result(quad.of),
    });
    const head = `  if (index >= s.rows) { return; }
  let count = s.columns / ${4 * quads}u;
  let base = index * count;
`;
    const again = `${statistics.map((statistic) => foldCode(statistic, true, loops, quads)).join("")}  let row = vec4u(index);
  ${loops.each} {
${loadingUnit(
  quads,
  "j",
  (x) => `load_${x}(base + j)`,
  (unit) => storeUnit(unit, "base + j", out, stored),
)}  }
`;
    if (!owners || isCpu(context)) return `${loops.main}${head}${again}}\n`;
    const kept = (units: readonly KeptUnit[]): string =>
      onceProgram(statistics, stored, out, units, loops);
    return `${loops.main}${head}${keptRow(owners.lanes, quads, "count", kept, again)}}\n`;
  }
  const code = statistics.map((statistic) => foldCode(statistic, false, loops));
  // Distributes the statistics of rows to elements.
  const byElement = statistics.map(
    ({ name }) =>
      `    let ${name} = vec4f(${lanes.map((lane) => `${name}_rows[part.${lane}]`).join(", ")});\n`,
  );
  return `${loops.main}${rowHead}${code.join("")}${statistics
    .map(({ name }) => `  let ${name}_rows = ${name};\n`)
    .join("")}  ${loops.each} {
    let quad = index * count + j;
    if (quad * 4u >= s.rows * count) { break; }
    let element = vec4u(j * 4u) + vec4u(0u, 1u, 2u, 3u);
    let part = element / count;
    let row = index * 4u + part;
    let column = element % count;
${byElement.join("")}    store_${out}(quad, ${result((name) => `load_${name}(quad)`)});
  }
}
`;
}

/**
 * The statements of a {@link rowProgram} for rows of so few quads that the registers of a team hold them: each operand is loaded
 * once. Invocations beyond the end of a row have its last quads, which change no maximum, and nothing of which is added or stored.
 */
function onceProgram(
  statistics: readonly RowStatistic[],
  stored: (quad: Quad) => Computed,
  out: string,
  units: readonly KeptUnit[],
  loops: RowLoops,
): string {
  const folds = statistics.map(({ name, fold, value }) => {
    const all = `${name}_all`;
    const parts = units.flatMap(({ inside, quads }) =>
      quads.map(({ of, index }) => {
        const part = value(of, index);
        return fold === "max" ? part : `select(vec4f(0.0), ${part}, ${inside})`;
      }),
    );
    const code = parts.map((part, p) => {
      if (p === 0) return `    var ${all} = ${part};\n`;
      return `    ${all} ${fold === "max" ? `= max(${all}, ${part})` : `+= ${part}`};\n`;
    });
    return `${code.join("")}    ${all} = ${loops.together(fold, all)};
    let ${name} = vec4f(${acrossQuad(fold, all)});
`;
  });
  const stores = units.map(
    ({ inside, place, quads }) => `    if (${inside}) {
${storeUnit(quads, place, out, stored)}    }
`,
  );
  return `${folds.join("")}    let row = vec4u(index);
${stores.join("")}`;
}

/** Workgroups of a {@link rowProgram}. */
export const rowProgramWorkgroups = (
  walk: RowProgramWalk,
  rows: number,
  owner: RowOwner,
  context: ProgramContext,
): readonly [number, number, number] =>
  linearWorkgroups(walk === "lanes" ? Math.ceil(rows / 4) : rows, teamOf(owner, context) ? 1 : 64);

/** An entry point that stores one number for each row, `result` of its statistics, in the [rows] binding `out`. */
export function rowFold(
  statistics: readonly RowStatistic[],
  result: string,
  out: string,
  owner: RowOwner,
  context: ProgramContext,
): string {
  const loops = rowLoops(teamOf(owner, context));
  const code = statistics.map((statistic) => foldCode(statistic, false, loops));
  return `${loops.main}${rowHead}${code.join("")}  if (${loops.isOne}) { store_${out}(index, ${result}); }
}
`;
}

const rowHead = /* wgsl */ `  if (index * 4u >= s.rows) { return; }
  let count = s.columns;
  let row = min(vec4u(index * 4u) + vec4u(0u, 1u, 2u, 3u), vec4u(s.rows - 1u));
  let base = row * count;
`;

const lanes = ["x", "y", "z", "w"] as const;

const gathered = (name: string, index: (lane: string) => string): string =>
  `vec4f(${lanes.map((lane) => `at_${name}(${index(lane)})`).join(", ")})`;

/** A statistic of a row, from the quads of its units, or of four rows, one in each lane of a vec4f. */
function foldCode(
  { name, fold, value }: RowStatistic,
  isQuads: boolean,
  loops: RowLoops,
  quads: UnitQuads = 1,
): string {
  const load = (j: string) => (operand: string) =>
    isQuads ? `load_${operand}(base + ${j})` : gathered(operand, (lane) => `base.${lane} + ${j}`);
  const all = `${name}_all`;
  const joined = acrossQuad(fold, all);
  const first = (operand: string): string => load("0u")(operand) + (quads === 1 ? "" : "[0]");
  return `  var ${all} = ${fold === "max" ? value(first, "0u") : "vec4f(0.0)"};
  ${loops.each} { ${loadingUnit(quads, "j", load("j"), (unit) =>
    eachQuad(unit, ({ of, index }) => {
      const part = value(of, index);
      return `${all} = ${fold === "max" ? `max(${all}, ${part})` : `${all} + ${part}`};`;
    }),
  )} }
  ${all} = ${loops.together(fold, all)};
  let ${name} = ${isQuads ? `vec4f(${joined})` : all};
`;
}

const acrossQuad = (fold: RowStatistic["fold"], all: string): string =>
  fold === "max"
    ? `max(max(${all}.x, ${all}.y), max(${all}.z, ${all}.w))`
    : `(${all}.x + ${all}.y) + (${all}.z + ${all}.w)`;
