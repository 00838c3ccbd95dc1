import type { ProgramContext, Workgroups } from "@halfstep/device";
import { isCpu } from "../cpu-adapter.js";
import { linearMain, linearWorkgroups, zeroBehind } from "../kernel.js";
import { chunkFunctions } from "./row-walk.js";
import { type Team, team } from "./team.js";

/**
 * How a program merges partials [chunks, channels] (see row-walk.ts). A quad of channels belongs to one invocation or, with many
 * chunks, to a workgroup, whose invocations share the chunks and combine their results. The choice depends on the shape only.
 */
export type MergeOwner = "invocation" | "workgroup";

export const mergeOwner = (chunks: number): MergeOwner =>
  chunks <= 32 ? "invocation" : "workgroup";

/** A program whose `body` runs for each quad of channels, `index`, in all `lanes` of its owner, numbered by `lane`. */
export function mergeProgram(owner: MergeOwner, body: string, context: ProgramContext): string {
  const { lanes, declarations } = teamOf(context);
  const functions = chunkFunctions(context);
  if (owner === "invocation")
    return `${functions}${linearMain(lanes)}
  if (index * 4u >= s.channels) { return; }
  let lane = 0u;
  let lanes = 1u;
${body}}
`;
  return `${functions}${declarations}
@compute @workgroup_size(${lanes})
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
  let index = group.x + group.y * groups.x;
  if (index * 4u >= s.channels) { return; }
  let lanes = ${lanes}u;
${body}}
`;
}

/** Runs `body` for each chunk `k` of the invocation's share. */
export const mergeLoop = (body: string): string =>
  `for (var k = lane; k < chunk_count(); k += lanes) {\n${body}  }\n`;

/** The quad of channels of chunk `k` in a binding of partials. */
export const atChunk = (name: string, k: string): string => `merge_${name}(index, ${k})`;

/** Declares what {@link atChunk} calls. */
export const chunkLoads = (names: readonly string[]): string =>
  names
    .map(
      (name) => `
fn merge_${name}(index: u32, k: u32) -> vec4f {
  if ((s.channels & 3u) == 0u) { return load_${name}(k * (s.channels / 4u) + index); }
  let i = k * s.channels + index * 4u;
  let quad = vec4f(at_${name}(i), at_${name}(i + 1u), at_${name}(i + 2u), at_${name}(i + 3u));
  return ${zeroBehind("quad", "s.channels")};
}`,
    )
    .join("");

/** The sum of a vec4f over the lanes of the owner. */
export const joined = (owner: MergeOwner, value: string, context: ProgramContext): string =>
  owner === "invocation" ? value : teamOf(context).sum(value);

/** Whether a {@link mergeProgram} needs subgroups. */
export const mergeUsesSubgroups = (owner: MergeOwner, context: ProgramContext): boolean =>
  owner === "workgroup" && teamOf(context).usesSubgroups;

/** Workgroups of a {@link mergeProgram}. */
export const mergeWorkgroups = (
  owner: MergeOwner,
  channels: number,
  context: ProgramContext,
): Workgroups =>
  linearWorkgroups(Math.ceil(channels / 4), owner === "invocation" ? teamOf(context).lanes : 1);

const teamOf = (context: ProgramContext): Team => team(isCpu(context) ? 8 : 64, context);
