import type { ProgramContext, Workgroups } from "@halfstep/device";
import { isCpu } from "../cpu-adapter.js";
import { linearWorkgroups } from "../kernel.js";
import { expOf, logOf } from "../wgsl/transcendental.js";
import { type CrfParts, smallLanes } from "./crf-kernel.js";
import { maxCrfTags } from "./shape.js";

// Parts of programs that process sequences step by step, and the same arithmetic for their references.

/** The head of an entry point that processes sequence `b`: `lane` takes tags `lane`, `lane + lanes`, … */
export function chainMain(context: ProgramContext, parts: CrfParts): string {
  const lanes = lanesOf(context, parts);
  return `const lanes = ${lanes}u;
@compute @workgroup_size(${lanes})
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
  let b = group.x + group.y * groups.x;
  if (b >= s.batch) { return; }
`;
}

/** WGSL: the offset of the numbers of place t in a double buffer. */
export const half = (t: string): string => `((${t}) & 1u) * ${maxCrfTags}u`;

/** On CPU adapters a barrier is cheap in a workgroup of one subgroup only. */
function lanesOf(context: ProgramContext, { isWide }: CrfParts): number {
  const small = context.subgroupSize || smallLanes;
  return isWide && !isCpu(context) ? Math.max(small, 256) : small;
}

export const chainWorkgroups = ({ batch }: Readonly<Record<string, number>>): Workgroups =>
  linearWorkgroups(batch as number, 1);

/** The lowest float32, from which maxima start. */
const lowest = "-3.4028234e38";

/** WGSL statements that compute `log_sum` of quads `i` of numbers, without the numbers behind the last tag. */
export const logSumExpCode = (quad: string): string => /* wgsl */ `
  var tops = vec4f(${lowest});
  for (var i = 0u; i < s.tags; i += 4u) { tops = max(tops, select(vec4f(${lowest}), ${quad}, counted(i))); }
  let largest = max(max(tops.x, tops.y), max(tops.z, tops.w));
  var totals = vec4f(0.0);
  for (var i = 0u; i < s.tags; i += 4u) { totals += select(vec4f(0.0), row_exp(${quad} - largest), counted(i)); }
  let log_sum = largest + row_log(vec4f((totals.x + totals.y) + (totals.z + totals.w))).x;
`;

/** The names of arrays in workgroup memory, of two places each. */
export const placeArrays = (...names: readonly string[]): string =>
  names.map((name) => `var<workgroup> ${name}: array<f32, ${2 * maxCrfTags}>;\n`).join("");

/** WGSL functions of all CRF kernels. `highest` is the largest emission of a place, which is subtracted from all. */
export const crfFunctions = ({
  hasMask,
}: CrfParts): string => `${expOf("row_exp")}${logOf("row_log")}
fn counted(i: u32) -> vec4<bool> { return vec4u(i) + vec4u(0u, 1u, 2u, 3u) < vec4u(s.tags); }
fn is_present(place: u32) -> bool { return ${hasMask ? "at_mask(place) != 0u" : "true"}; }
`;

export const highestFunction: string = /* wgsl */ `
fn highest(place: u32) -> f32 {
  var top = ${lowest};
  for (var j = 0u; j < s.tags; j++) { top = max(top, at_emissions(place * s.tags + j)); }
  return top;
}
`;

/** The largest emission of a place. */
export function highestOf(emissions: ArrayLike<number>, place: number, tags: number): number {
  let top = -3.4028234663852886e38;
  for (let j = 0; j < tags; j++) top = Math.max(top, emissions[place * tags + j] as number);
  return top;
}

/** log Σ exp of `count` numbers. */
export function logSumExp(count: number, value: (i: number) => number): number {
  let top = -3.4028234663852886e38;
  for (let i = 0; i < count; i++) top = Math.max(top, value(i));
  let total = 0;
  for (let i = 0; i < count; i++) total += Math.exp(value(i) - top);
  return top + Math.log(total);
}
