import type { ProgramContext, Workgroups } from "@halfstep/device";
import { isCpu } from "../cpu-adapter.js";
import { linearWorkgroups } from "../kernel.js";
import type { Epilogue } from "../woven-definition.js";

/**
 * A convolution by 3×3 windows without strides, or its gradient by the weight, as CPU adapters compute it: each number that a subgroup
 * loads from the image serves several taps.
 */
export interface Patch {
  /** Tells kernels of different patches apart. */
  readonly name: string;
  /** True where it moves quads of the weight and the result, whatever their unit in tiles. */
  readonly movesQuads?: boolean;
  program(context: ProgramContext, epilogue?: Epilogue): string;
  workgroups(scalars: Readonly<Record<string, number>>): Workgroups;
}

/** A convolution, or its gradient by the input: a convolution of the output's gradient by the window turned by 180°. */
export type Direction = "forward" | "backward";

export interface PatchSource {
  readonly direction: Direction;
  /** Whether its channels are a multiple of 4; always backward. */
  readonly isQuads: boolean;
}

/** WGSL (u32): the zeros before the source's first line, or pixel. Windows are of 3×3. */
export const paddingOf = (direction: Direction, axis: "x" | "y"): string =>
  direction === "forward" ? `s.padding_${axis}` : `(2u - s.padding_${axis})`;

/** Where a load of one number takes as long as several vector multiply-adds. */
export const takesPatches = (context: ProgramContext): boolean =>
  isCpu(context) && context.subgroupSize === lanes;

/** Of a subgroup. */
export const lanes = 8;

/** Of the pixels that a subgroup computes. */
export interface PatchSize {
  readonly height: number;
  readonly width: number;
}

/** Code for so many things in a row, by number. */
export const each = (count: number, code: (i: number) => string): string =>
  Array.from({ length: count }, (_, i) => code(i)).join("");

/** WGSL: how the entry point of one subgroup a workgroup begins. In its scope are `lane` and the `tile` that it computes. */
export const patchHead: string = `@compute @workgroup_size(${lanes})
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(subgroup_invocation_id) lane: u32,
) {
  let tile = group.x + group.y * groups.x;
`;

/**
 * WGSL: how the entry point of a rectangle of pixels begins. In its scope are `lane`, this invocation's `column`, the `image`, and the first line `top` and
 * pixel `left` of the patch in it.
 */
export const patchMain = ({ height, width }: PatchSize): string => `
${patchHead}  let across = (s.columns + ${lanes - 1}u) / ${lanes}u;
  let column = tile % across * ${lanes}u + lane;
  let wide = (s.target_width + ${width - 1}u) / ${width}u;
  let high = (s.target_height + ${height - 1}u) / ${height}u;
  let left = tile / across % wide * ${width}u;
  let top = tile / across / wide % high * ${height}u;
  let image = tile / across / wide / high;
  if (image >= s.images) { return; }
`;

/** Workgroups of {@link patchMain}. */
export function patchWorkgroups(
  { height, width }: PatchSize,
  scalars: Readonly<Record<string, number>>,
): Workgroups {
  const { columns, images, target_height, target_width } = scalars as Record<
    "columns" | "images" | "target_height" | "target_width",
    number
  >;
  const patches = images * Math.ceil(target_height / height) * Math.ceil(target_width / width);
  return linearWorkgroups(patches * Math.ceil(columns / lanes), 1);
}

/** How patches load a quad of channels, and take it apart: WGSL. */
export interface QuadLoads {
  readonly zero: string;
  load(at: string): string;
  /** The number of channel `c` of the quad; {@link channelMarks} in the scope. */
  channel(quad: string): string;
}

export const channelMarks: string = `  let isUpper = c > 1u;
  let isOdd = (c & 1u) == 1u;
  let shift = (c & 1u) * 16u;
`;

/** Quads as they lie in memory, where those of 16 bits are half as many words as channels. */
export function quadLoads({ bindings }: ProgramContext, name: "source" | "weight"): QuadLoads {
  const { dtype, rounding } = bindings[name === "source" ? 0 : 1] as ProgramContext["bindings"][0];
  return !rounding && (dtype === "float16" || dtype === "bfloat16")
    ? {
        zero: "vec2u()",
        load: (at) => `${name}_data[${at}]`,
        channel: (quad) => `pair_${dtype}(select(${quad}.x, ${quad}.y, isUpper) >> shift).x`,
      }
    : {
        zero: "vec4f()",
        load: (at) => `load_${name}(${at})`,
        channel: (quad) =>
          `select(select(${quad}.x, ${quad}.y, isOdd), select(${quad}.z, ${quad}.w, isOdd), isUpper)`,
      };
}
