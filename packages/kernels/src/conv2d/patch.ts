import type { ProgramContext, Workgroups } from "@halfstep/device";
import type { Epilogue } from "../definition.js";
import { linearWorkgroups } from "../kernel.js";

/**
 * A convolution by 3×3 windows without strides as CPU adapters compute it: a subgroup loads what lies under all the windows of a
 * rectangle of pixels, each number of the image once for the nine taps, one channel at a time.
 */
export interface Patch {
  /** Tells kernels of different patches apart. */
  readonly name: string;
  program(context: ProgramContext, epilogue?: Epilogue): string;
  workgroups(scalars: Readonly<Record<string, number>>): Workgroups;
}

/** Where a load of one number takes as long as several vector multiply-adds. */
export const takesPatches = ({ hardware, subgroupSize }: ProgramContext): boolean =>
  hardware?.class === "software" && subgroupSize === lanes;

/** Of a subgroup. */
export const lanes = 8;

/** Of the pixels that a subgroup computes. */
export interface PatchSize {
  readonly height: number;
  readonly width: number;
}

/**
 * WGSL: the head of a patch's entry point. In its scope are `lane`, this invocation's `column`, the `image`, and the first line `top` and
 * pixel `left` of the patch in it.
 */
export const patchMain = ({ height, width }: PatchSize): string => `
@compute @workgroup_size(${lanes})
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(subgroup_invocation_id) lane: u32,
) {
  let tile = group.x + group.y * groups.x;
  let across = (s.columns + ${lanes - 1}u) / ${lanes}u;
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
