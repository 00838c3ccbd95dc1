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

const lanes = 8;

/** One for each patch, and for each `across` of the scalar `columns`. */
export function patchWorkgroups(
  { height, width }: { readonly height: number; readonly width: number },
  across: number,
  scalars: Readonly<Record<string, number>>,
): Workgroups {
  const { columns, images, target_height, target_width } = scalars as Record<
    "columns" | "images" | "target_height" | "target_width",
    number
  >;
  const patches = images * Math.ceil(target_height / height) * Math.ceil(target_width / width);
  return linearWorkgroups(patches * Math.ceil(columns / across), 1);
}
