import type { ProgramContext } from "@halfstep/device";
import { linearMain, linearWorkgroups } from "../kernel.js";

/**
 * How a program over [rows, columns] that needs whole rows divides them. With columns in whole quads an invocation owns one row.
 * Otherwise it owns four rows, which together are whole quads of the flat buffer, and each lane reduces a row of its own. For
 * long rows the owner is a subgroup.
 */
export type RowProgramWalk = "quads" | "lanes";

export const rowProgramWalk = (columns: number): RowProgramWalk =>
  columns % 4 === 0 ? "quads" : "lanes";

/**
 * The owner of one row or four: an invocation, or for long rows, where subgroups have one size, a subgroup. Its lanes read
 * neighbouring elements and keep more of a device busy.
 */
export type RowOwner = "invocation" | "subgroup";

/** The owner of a row of so many columns. The choice depends on the shape only. */
export const rowOwner = (columns: number): RowOwner => (columns < 256 ? "invocation" : "subgroup");

/** A value for each owner, such as a kernel. */
export const byRowOwner = <T>(make: (owner: RowOwner) => T): Readonly<Record<RowOwner, T>> => ({
  invocation: make("invocation"),
  subgroup: make("subgroup"),
});

/** Whether subgroups own the rows of a program, which then uses subgroup built-ins. */
export const rowsUseSubgroups = (owner: RowOwner, { subgroupSize }: ProgramContext): boolean =>
  owner === "subgroup" && subgroupSize > 0;

/** WGSL around the rows of an owner, whose `index` counts owners. */
interface RowLoops {
  readonly main: string;
  /** The loop over each `j` of an invocation's share. */
  readonly each: string;
  /** Combines the results of all shares. */
  together(fold: RowStatistic["fold"], own: string): string;
  readonly isOne: string;
}

function rowLoops(owner: RowOwner, context: ProgramContext): RowLoops {
  if (!rowsUseSubgroups(owner, context))
    return {
      main: linearMain(),
      each: "for (var j = 0u; j < count; j++)",
      together: (_, own) => own,
      isOne: "true",
    };
  const lanes = context.subgroupSize;
  return {
    main: `@compute @workgroup_size(${lanes})
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(subgroup_invocation_id) lane: u32) {
  let index = group.x + group.y * groups.x;
`,
    each: `for (var j = lane; j < count; j += ${lanes}u)`,
    together: (fold, own) => `${fold === "max" ? "subgroupMax" : "subgroupAdd"}(${own})`,
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
): string {
  const isQuads = walk === "quads";
  const loops = rowLoops(owner, context);
  const head = isQuads
    ? `  if (index >= s.rows) { return; }
  let count = s.columns / 4u;
  let base = index * count;
`
    : rowHead;
  const code = statistics.map((statistic) => foldCode(statistic, isQuads, loops));
  if (isQuads)
    return `${loops.main}${head}${code.join("")}  let row = vec4u(index);
  ${loops.each} {
    let column = vec4u(j * 4u) + vec4u(0u, 1u, 2u, 3u);
    store_${out}(base + j, ${result((name) => `load_${name}(base + j)`)});
  }
}
`;
  // Distributes the statistics of rows to elements.
  const byElement = statistics.map(
    ({ name }) =>
      `    let ${name} = vec4f(${lanes.map((lane) => `${name}_rows[part.${lane}]`).join(", ")});\n`,
  );
  return `${loops.main}${head}${code.join("")}${statistics
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

/** Workgroups of a {@link rowProgram}. */
export const rowProgramWorkgroups = (
  walk: RowProgramWalk,
  rows: number,
  owner: RowOwner,
  context: ProgramContext,
): readonly [number, number, number] =>
  linearWorkgroups(
    walk === "quads" ? rows : Math.ceil(rows / 4),
    rowsUseSubgroups(owner, context) ? 1 : 64,
  );

/** An entry point that stores one number for each row, `result` of its statistics, in the [rows] binding `out`. */
export function rowFold(
  statistics: readonly RowStatistic[],
  result: string,
  out: string,
  owner: RowOwner,
  context: ProgramContext,
): string {
  const loops = rowLoops(owner, context);
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

function foldCode({ name, fold, value }: RowStatistic, isQuads: boolean, loops: RowLoops): string {
  const valueAt = (j: string): string =>
    value(
      (operand) =>
        isQuads
          ? `load_${operand}(base + ${j})`
          : gathered(operand, (lane) => `base.${lane} + ${j}`),
      j,
    );
  const all = `${name}_all`;
  const joined =
    fold === "max"
      ? `max(max(${all}.x, ${all}.y), max(${all}.z, ${all}.w))`
      : `(${all}.x + ${all}.y) + (${all}.z + ${all}.w)`;
  return `  var ${all} = ${fold === "max" ? valueAt("0u") : "vec4f(0.0)"};
  ${loops.each} { ${all} = ${fold === "max" ? `max(${all}, ${valueAt("j")})` : `${all} + ${valueAt("j")}`}; }
  ${all} = ${loops.together(fold, all)};
  let ${name} = ${isQuads ? `vec4f(${joined})` : all};
`;
}
