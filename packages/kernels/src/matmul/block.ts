import type { Workgroups } from "@halfstep/device";
import { linearWorkgroups } from "../kernel.js";
import type { RowSumsSupport } from "./row-sums.js";

/** Neighbouring blocks share their columns of the right factor in the cache, this many at a time. */
const band = 8;

/**
 * The head of an entry point of `invocations`, whose workgroup computes one block: declares `row0` and `column0`, the first
 * row and column of the block, and `slice`.
 */
export const blockMain = (
  { rows, columns }: { readonly rows: number; readonly columns: number },
  width: 2 | 4,
  invocations: number,
  attributes = "",
  parameters = "",
): string => `@compute @workgroup_size(${invocations})${attributes}
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) local: u32,${parameters}
) {
  let block = group.x + group.y * groups.x;
  let across = (s.columns * ${width}u + ${columns - 1}u) / ${columns}u;
  let down = (s.m + ${rows - 1}u) / ${rows}u;
  let slice = block / (across * down);
  if (slice >= s.slices) { return; }
  let place = block % (across * down);
  let first = place / (${band}u * down) * ${band}u;
  let wide = min(${band}u, across - first);
  let inside = place - first * down;
  let column0 = (first + inside % wide) * ${columns}u;
  let row0 = inside / wide * ${rows}u;
`;

export const blockWorkgroups = (
  { rows, columns }: { readonly rows: number; readonly columns: number },
  width: 2 | 4,
  scalars: Readonly<Record<string, number>>,
): Workgroups => {
  const { m, slices } = scalars as Record<"m" | "slices", number>;
  const across = Math.ceil(((scalars.columns as number) * width) / columns);
  return linearWorkgroups(across * Math.ceil(m / rows) * slices, 1);
};

/** The loads of a factor's groups of elements, and their places in a block of `size` rows (or columns) and `depth` along k. */
export interface FactorLoads {
  /** Loads of one invocation. */
  readonly count: number;
  /** Neighbours along k, or across it. */
  readonly along: "k" | "across";
  /** Statements before the loop over k that declare the loads' registers, for the block that begins at `begin`. */
  readonly before: string;
  /** WGSL of load number `i` where the block begins at quad `step` of k; zeros past the end. */
  load(i: number, step: string): string;
  /** Statements behind all loads of a block that move their registers to the next block. */
  readonly advance: string;
  /** WGSL (u32) of the position of load `i`: the line of the group, and its number in the line. */
  line(i: number): string;
  place(i: number): string;
}

/** WGSL of the loads of a factor. */
export interface FactorLoad {
  /** Functions that it calls. */
  readonly functions?: string;
  /** What load number `i`, whose registers it may read instead of its place, loads from a place in the factor. */
  readonly of: (line: string, place: string, i: number) => string;
  /** The registers that an invocation keeps for its loads, so that the loop over k decodes no places. */
  readonly registers?: (loads: BlockLoads) => LoadRegisters;
}

/** A factor, loaded as a `vec4f` of four neighbours at a time. */
export interface FactorQuads extends FactorLoad {
  /** "k": from (position across k, quad of k). "across": from (k, quad across k). */
  readonly along: "k" | "across";
  /** True where `of` itself gives zeros past the end of k. */
  readonly isBounded?: boolean;
  /** Set where the factor may be copied as it is stored. */
  readonly copied?: CopiedLines | CopiedGroups;
}

/** A factor whose lines are whole groups of elements in memory, at equal distances. WGSL, which counts in elements. */
export interface CopiedLines {
  /** Elements of a group. */
  readonly elements: 4 | 8;
  /** The first element, and the distance between lines. */
  readonly start: string;
  readonly stride: string;
  /** The end of k in this slice. */
  readonly end: string;
  /** Loads the group at an index of groups. */
  load(index: string): string;
}

/** A factor whose lines are whole groups of elements, of which each has a place of its own in memory. */
interface CopiedGroups {
  /** Elements of the largest groups. */
  readonly elements: 4 | 8;
  /** Loads of groups of a form, with zeros past the end of k. */
  inGroups(form: GroupForm): FactorLoad;
}

/** A group of elements, and the WGSL type of a group as it is stored. */
export interface GroupForm {
  readonly elements: 4 | 8;
  readonly type: "vec4u" | "vec2u" | "vec4f";
}

/** The loads of an invocation in the first block. */
export interface BlockLoads {
  readonly count: number;
  /** The block's length along k. */
  readonly depth: number;
  /** WGSL (u32) of the place of load number `i` in the factor: its line, and its number in the line. One of them is the same for all. */
  line(i: number): string;
  place(i: number): string;
}

export interface LoadRegisters {
  /** Statements that declare the registers for the first block. */
  readonly before: string;
  /** Statements that move them on by the depth of a block. */
  readonly advance: string;
}

/** The factors of a product by blocks. Their WGSL may use the declarations of {@link blockMain}. */
export interface BlockFactors {
  readonly functions: string;
  /**
   * Statements at the start that declare the slice's quads of k, from `begin` to `end`, and what the loads use. `begin` is a multiple of
   * `grain`, the quads of k in a step.
   */
  range(grain: number): string;
  readonly left: FactorQuads;
  readonly right: FactorQuads;
  /** To also add up the rows of the left factor, which then lies across k. */
  readonly rowSums?: RowSumsSupport | undefined;
}

/**
 * The loads of a factor whose part of the block is `size` × `depth` and begins at `first` (WGSL, u32) across k, in groups of so many
 * elements.
 */
export function factorLoads(
  { along, of, isBounded = false, registers }: FactorQuads,
  { size, depth, first }: { readonly size: number; readonly depth: number; readonly first: string },
  invocations: number,
  elements: 4 | 8 = 4,
): FactorLoads {
  const perLine = (along === "k" ? depth : size) / elements;
  const count = (size * depth) / elements / invocations;
  if (!Number.isInteger(count) || invocations % perLine !== 0)
    throw new RangeError(
      `a block of ${size} × ${depth} cannot be loaded by ${invocations} invocations`,
    );
  const index = (i: number): string => (i === 0 ? "local" : `(local + ${i * invocations}u)`);
  const line = (i: number): string => `${index(i)} / ${perLine}u`;
  const place = (i: number): string => `${index(i)} % ${perLine}u`;
  const lineAt = (i: number, step: string): string =>
    along === "k" ? `${first} + ${line(i)}` : `${step} * 4u + ${line(i)}`;
  const start = (step: string): string => {
    if (along === "across") return `${first} / ${elements}u`;
    return elements === 4 ? step : `${step} / ${elements / 4}u`;
  };
  const placeAt = (i: number, step: string): string => `${start(step)} + ${place(i)}`;
  const own = registers?.({
    count,
    depth,
    line: (i) => lineAt(i, "begin"),
    place: (i) => placeAt(i, "begin"),
  });
  return {
    count,
    along,
    before: own?.before ?? "",
    load(i, step) {
      const value = of(lineAt(i, step), placeAt(i, step), i);
      if (isBounded) return value;
      const isInside =
        along === "k" ? `${placeAt(i, step)} < end` : `${lineAt(i, step)} < end * 4u`;
      return `select(vec4f(), ${value}, ${isInside})`;
    },
    advance: own?.advance ?? "",
    line,
    place,
  };
}
