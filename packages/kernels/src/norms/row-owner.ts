import type { ProgramContext, Workgroups } from "@halfstep/device";
import { linearMain, linearWorkgroups } from "../kernel.js";
import { isCpu } from "../wgsl/row-walk.js";
import { type Team, team } from "../wgsl/team.js";
import type { NormShape } from "./shape.js";

/**
 * Who folds a row and then stores it, in one launch: an invocation where rows are `short`, a team where they are `few`. Other rows
 * belong to a team too, but on CPUs, whose invocations load what is one for all of them, as parameters are, at once.
 */
export type RowOwner = "short" | "many" | "few";

/** The owner of the rows of a shape, a choice by shape alone; undefined where groups are no rows in whole quads. */
export function rowOwner({ batch, pixels, groups, width }: NormShape): RowOwner | undefined {
  if (pixels !== 1 || groups !== 1 || width % 4 !== 0) return undefined;
  if (width < 64) return "short";
  return batch < 64 ? "few" : "many";
}

const teamOf = (owner: RowOwner, context: ProgramContext): Team | undefined =>
  owner === "short" || (owner === "many" && isCpu(context))
    ? undefined
    : team(context.subgroupSize || (isCpu(context) ? 8 : 64), context);

const sizeAlone = (context: ProgramContext): number => (isCpu(context) ? 8 : 64);

/**
 * A program whose `body` runs for each `row`, whose `steps` quads begin at quad `base`, in all `lanes` of its owner, which count by
 * `lane`. `body` may sum a vec4f over them.
 */
export function rowsProgram(
  owner: RowOwner,
  body: (sum: (value: string) => string) => string,
  context: ProgramContext,
): string {
  const whole = teamOf(owner, context);
  const head = whole
    ? `${whole.declarations}
@compute @workgroup_size(${whole.lanes})
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
  let row = group.x + group.y * groups.x;
  let lanes = ${whole.lanes}u;
`
    : `${linearMain(sizeAlone(context))}
  let row = index;
  let lane = 0u;
  let lanes = 1u;
`;
  return `${head}  if (row >= s.batch) { return; }
  let steps = s.width / 4u;
  let base = row * steps;
${body(whole?.sum ?? ((value) => value))}}
`;
}

/** Runs `body` for each quad `c` of the row that is the invocation's; in buffers of rows it is quad `base + c`. */
export const quadLoop = (body: string): string =>
  `for (var c = lane; c < steps; c += lanes) {\n${body}  }\n`;

export const rowsUseSubgroups = (owner: RowOwner, context: ProgramContext): boolean =>
  teamOf(owner, context)?.usesSubgroups ?? false;

/** Workgroups of a {@link rowsProgram}. */
export const rowsWorkgroups = (
  owner: RowOwner,
  rows: number,
  context: ProgramContext,
): Workgroups => linearWorkgroups(rows, teamOf(owner, context) ? 1 : sizeAlone(context));

/** A kernel for each owner and each set of optional operands, made when it is first asked for. */
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

/** `vec4f` to the number that its lanes are together. */
export const across = (v: string): string => `((${v}.x + ${v}.y) + (${v}.z + ${v}.w))`;
