import type { ProgramContext, Workgroups } from "@halfstep/device";
import { isCpu } from "../cpu-adapter.js";
import { linearMain, linearWorkgroups } from "../kernel.js";
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

/** The parts of a program over rows, in WGSL. */
export interface RowsCode {
  /**
   * The body of a function from `row`, `lane` and `lanes` to a vec4f, the numbers of a row, whose `steps` quads begin at quad `base`.
   * `total` is the sum of a vec4f's elements over all lanes, which share a {@link quadLoop}.
   */
  numbers(total: (value: string) => string): string;
  /** Statements before those of `store`, for each quad `c` of a row: values that rows share. */
  readonly parameters: string;
  /** Statements that store quad `q` of a row of `numbers`. */
  readonly store: string;
}

/** Runs `body` for each quad `c` of the row that the invocation processes. */
export const quadLoop = (body: string): string =>
  `for (var c = lane; c < steps; c += lanes) {\n${body}  }\n`;

/** A program over `s.batch` rows of `s.width` elements. */
export function rowsProgram(owner: RowOwner, code: RowsCode, context: ProgramContext): string {
  const { whole, rows } = divisionOf(owner, context);
  const total = whole?.total ?? across;
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
  return `${whole?.declarations ?? ""}
fn numbers_of(row: u32, lane: u32, lanes: u32) -> vec4f {
  let steps = s.width / 4u;
  let base = row * steps;
${code.numbers(total)}}
${head}  let first = index * ${rows}u;
  if (first >= s.batch) { return; }
  let steps = s.width / 4u;
${each((r) => `  let numbers_${r} = numbers_of(${known(r)}, lane, lanes);\n`)}  ${quadLoop(
    `${code.parameters}${each(
      (r) => `    ${rows === 1 ? "" : `if (${row(r)} < s.batch) `}{
      let q = (${row(r)}) * steps + c;
      let numbers = numbers_${r};
${code.store}    }
`,
    )}`,
  )}}
`;
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
