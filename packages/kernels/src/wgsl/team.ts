import type { ProgramContext } from "@halfstep/device";

/** A workgroup whose invocations share a computation, and then add up their results. */
export interface Team {
  readonly lanes: number;
  readonly usesSubgroups: boolean;
  /** WGSL declarations before `main`. */
  readonly declarations: string;
  /** The sum of a vec4f over all invocations, which `lane` numbers; in uniform control flow only. */
  sum(value: string): string;
  /** The sum of a vec4f's elements over all invocations, likewise. */
  total(value: string): string;
  /** The largest of a vec4f over all invocations, likewise. */
  largest(value: string): string;
  /** The vec4f of one invocation for all of them, likewise. It needs `firstDeclaration`. */
  first(value: string): string;
  readonly firstDeclaration: string;
}

/**
 * A team of so many invocations: a subgroup where the device has that size, because barriers are slow on CPUs and not cheap
 * elsewhere.
 */
export const team = (lanes: number, { subgroupSize }: ProgramContext): Team =>
  subgroupSize === lanes
    ? {
        ...{ lanes, usesSubgroups: true, declarations: totalBySubgroup },
        sum: (value) => `subgroupAdd(${value})`,
        total: (value) => `team_total(${value}, lane)`,
        largest: (value) => `subgroupMax(${value})`,
        first: (value) => `subgroupBroadcastFirst(${value})`,
        firstDeclaration: "",
      }
    : {
        lanes,
        usesSubgroups: false,
        declarations: foldsInMemory(lanes),
        sum: (value) => `team_sum(${value}, lane)`,
        total: (value) => `team_total(${value}, lane)`,
        largest: (value) => `team_largest(${value}, lane)`,
        first: (value) => `team_first(${value}, lane)`,
        firstDeclaration: firstInMemory,
      };

/** The head of an entry point whose `index` counts teams, with their declarations. */
export const teamMain = ({ lanes, declarations }: Team): string => `${declarations}
@compute @workgroup_size(${lanes})
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
  let index = group.x + group.y * groups.x;
`;

const totalBySubgroup = /* wgsl */ `
fn team_total(own: vec4f, lane: u32) -> f32 {
  return subgroupAdd((own.x + own.y) + (own.z + own.w));
}
`;

const foldInMemory = (
  name: string,
  lanes: number,
  folded: string,
): string => /* wgsl */ `fn ${name}(own: vec4f, lane: u32) -> vec4f {
  workgroupBarrier();
  team_parts[lane] = own;
  for (var half = ${lanes / 2}u; half > 0u; half /= 2u) {
    workgroupBarrier();
    if (lane < half) { team_parts[lane] ${folded}; }
  }
  workgroupBarrier();
  return team_parts[0];
}`;

const foldsInMemory = (lanes: number): string => /* wgsl */ `
var<workgroup> team_parts: array<vec4f, ${lanes}>;
${foldInMemory("team_sum", lanes, "+= team_parts[lane + half]")}
${foldInMemory("team_largest", lanes, "= max(team_parts[lane], team_parts[lane + half])")}
fn team_total(own: vec4f, lane: u32) -> f32 {
  let sum = team_sum(own, lane);
  return (sum.x + sum.y) + (sum.z + sum.w);
}
`;

const firstInMemory = /* wgsl */ `fn team_first(own: vec4f, lane: u32) -> vec4f {
  workgroupBarrier();
  if (lane == 0u) { team_parts[0] = own; }
  workgroupBarrier();
  return team_parts[0];
}
`;
