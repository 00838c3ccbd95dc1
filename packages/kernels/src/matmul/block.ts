import type { Workgroups } from "@halfstep/device";
import { linearWorkgroups } from "../kernel.js";

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

/** The loads of a factor's quads, and their places in a block of `size` rows (or columns) and `depth` along k. */
export interface FactorLoads {
  /** Loads of one invocation. */
  readonly count: number;
  /** Four neighbours along k, or across it. */
  readonly along: "k" | "across";
  /** Statements before the loop over k that declare the loads' registers, for the block that begins at `begin`. */
  readonly before: string;
  /** WGSL (vec4f) of load number `i` where the block begins at quad `step` of k; zeros past the end. */
  load(i: number, step: string): string;
  /** Statements behind all loads of a block that move their registers to the next block. */
  readonly advance: string;
  /** WGSL (u32) of the position of load `i`: the line of the quad, and its number in the line. */
  line(i: number): string;
  quad(i: number): string;
}

/** WGSL of a `vec4f` of four neighbours of a factor. */
export interface FactorQuads {
  /** "k": from (position across k, quad of k). "across": from (k, quad across k). */
  readonly along: "k" | "across";
  /** The quad of load number `i`, whose registers it may read instead of its place. */
  readonly of: (line: string, quad: string, i: number) => string;
  /** True where `of` itself gives zeros past the end of k. */
  readonly isBounded?: boolean;
  /** The registers that an invocation keeps for its loads, so that the loop over k decodes no places. */
  readonly registers?: (loads: BlockLoads) => LoadRegisters;
  /** WGSL that `of` calls. */
  readonly functions?: string;
  /** Set where the factor may be copied as it is stored. */
  readonly copied?: CopiedFactor;
}

/** A factor whose lines are whole groups of elements in memory. WGSL, which counts in elements. */
interface CopiedFactor {
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

/** The loads of an invocation in the first block. */
export interface BlockLoads {
  readonly count: number;
  /** The block's length along k. */
  readonly depth: number;
  /** WGSL (u32) of the place of load number `i` in the factor. One of the two is the same for all loads. */
  line(i: number): string;
  quad(i: number): string;
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
  /** Whether the rows of the left factor, which then lies across k, are also added up. */
  readonly hasRowSums: boolean;
}

/** The loads of a factor whose part of the block is `size` × `depth` and begins at `first` (WGSL, u32) across k. */
export function factorLoads(
  { along, of, isBounded = false, registers }: FactorQuads,
  { size, depth, first }: { readonly size: number; readonly depth: number; readonly first: string },
  invocations: number,
): FactorLoads {
  const perLine = (along === "k" ? depth : size) / 4;
  const count = (size * depth) / 4 / invocations;
  if (!Number.isInteger(count) || invocations % perLine !== 0)
    throw new RangeError(
      `a block of ${size} × ${depth} cannot be loaded by ${invocations} invocations`,
    );
  const index = (i: number): string => (i === 0 ? "local" : `(local + ${i * invocations}u)`);
  const line = (i: number): string => `${index(i)} / ${perLine}u`;
  const quad = (i: number): string => `${index(i)} % ${perLine}u`;
  const lineAt = (i: number, step: string): string =>
    along === "k" ? `${first} + ${line(i)}` : `${step} * 4u + ${line(i)}`;
  const quadAt = (i: number, step: string): string =>
    along === "k" ? `${step} + ${quad(i)}` : `${first} / 4u + ${quad(i)}`;
  const own = registers?.({
    count,
    depth,
    line: (i) => lineAt(i, "begin"),
    quad: (i) => quadAt(i, "begin"),
  });
  return {
    count,
    along,
    before: own?.before ?? "",
    load(i, step) {
      const value = of(lineAt(i, step), quadAt(i, step), i);
      if (isBounded) return value;
      const isInside = along === "k" ? `${quadAt(i, step)} < end` : `${lineAt(i, step)} < end * 4u`;
      return `select(vec4f(), ${value}, ${isInside})`;
    },
    advance: own?.advance ?? "",
    line,
    quad,
  };
}
