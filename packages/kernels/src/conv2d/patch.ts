import type { ProgramContext, Workgroups } from "@halfstep/device";
import { isHalf } from "@halfstep/formats/dtypes";
import { isCpu } from "../cpu-adapter.js";
import { linearWorkgroups } from "../kernel.js";
import type { Epilogue } from "../woven-definition.js";

/**
 * A convolution by 3×3 windows without strides, or its gradient by the weight, as CPU adapters compute it: each number that a subgroup
 * loads from the image serves several taps.
 */
export interface Patch {
  /** The name of the patch in the variants of kernels. */
  readonly name: string;
  /** True where it moves quads of the weight and the result, independent of their unit in tiles. */
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

/** WGSL (u32): the padding before the source's first line or pixel. Windows are 3×3. */
export const paddingOf = (direction: Direction, axis: "x" | "y"): string =>
  direction === "forward" ? `s.padding_${axis}` : `(2u - s.padding_${axis})`;

/** Whether patches pay: where a load of one number takes as long as several vector multiply-adds. */
export const takesPatches = (context: ProgramContext): boolean =>
  isCpu(context) && context.subgroupSize === lanes;

/** Lanes of a subgroup. */
export const lanes = 8;

/** Size of the pixels that a subgroup computes. */
export interface PatchSize {
  readonly height: number;
  readonly width: number;
}

/** Joins the code for the numbers 0 … count − 1. */
export const each = (count: number, code: (i: number) => string): string =>
  Array.from({ length: count }, (_, i) => code(i)).join("");

/** WGSL: the head of an entry point with one subgroup a workgroup. It declares `lane` and the `tile` to compute. */
export const patchHead: string = `@compute @workgroup_size(${lanes})
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(subgroup_invocation_id) lane: u32,
) {
  let tile = group.x + group.y * groups.x;
`;

/**
 * WGSL: the head of the entry point of a rectangle of pixels. It declares `lane`, this invocation's `column`, the `image`, and the first
 * line `top` and pixel `left` of the patch in it.
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

/** WGSL that loads a quad of channels and extracts its elements. */
export interface QuadLoads {
  readonly zero: string;
  load(at: string): string;
  /** The element of channel `c` of the quad; needs {@link channelMarks} in scope. */
  channel(quad: string): string;
}

export const channelMarks: string = `  let isUpper = c > 1u;
  let isOdd = (c & 1u) == 1u;
  let shift = (c & 1u) * 16u;
`;

/** Quads as stored in memory: those of 16 bits have half as many words as channels. */
export function quadLoads({ bindings }: ProgramContext, name: "source" | "weight"): QuadLoads {
  const { dtype, rounding } = bindings[name === "source" ? 0 : 1] as ProgramContext["bindings"][0];
  return !rounding && isHalf(dtype)
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
