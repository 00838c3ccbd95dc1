import type { Device, DType, HalfDType, LaunchTarget } from "@halfstep/device";
import { normBackward } from "../src/norms/backward.js";
import { norm } from "../src/norms/norm.js";
import type { NormShape } from "../src/norms/shape.js";
import {
  type Launches,
  mismatches,
  runOnCpu,
  runOnGpu,
  testValues,
  unitRoundoff,
} from "./harness.js";

/** A norm and its gradient. */
export interface NormCase extends NormShape {
  readonly storage?: "float32" | HalfDType;
  /** Default "both". */
  readonly affine?: "both" | "weight" | "bias" | "none";
  /** RMS norm does not centre. */
  readonly isRms?: boolean;
}

/** The shape of rows. */
export const rows = (batch: number, width: number): NormShape => ({
  ...{ batch, pixels: 1, groups: 1, width },
});

export const eps = 1e-5;

/** Inputs with their values, and results with their lengths. */
export type NormOperands = Readonly<
  Record<"input" | "outGradient", { readonly values: Float32Array; readonly dtype: DType }> &
    Record<"weight" | "bias", { readonly values: Float32Array }> &
    Record<"out" | "inputGradient", { readonly values: number; readonly dtype: DType }> &
    Record<"mean" | "rstd" | "weightGradient" | "biasGradient", { readonly values: number }>
>;

export function operandsOf({
  batch,
  pixels,
  groups,
  width,
  storage: dtype = "float32",
}: NormCase): NormOperands {
  const size = batch * pixels * groups * width;
  const channels = groups * width;
  return {
    // Far from zero, so that a variance by the mean of squares would lose most of its digits.
    input: { values: testValues(size, 1).map((v) => v + 5), dtype },
    weight: { values: testValues(channels, 2) },
    bias: { values: testValues(channels, 3) },
    outGradient: { values: testValues(size, 4), dtype },
    mean: { values: batch * groups },
    rstd: { values: batch * groups },
    out: { values: size, dtype },
    inputGradient: { values: size, dtype },
    weightGradient: { values: channels },
    biasGradient: { values: channels },
  };
}

export const launchesOf =
  ({ affine = "both", isRms = false, ...shape }: NormCase): Launches<NormOperands> =>
  (target, all) => {
    const hasWeight = affine === "both" || affine === "weight";
    const hasBias = affine === "both" || affine === "bias";
    const operands = {
      input: all.input,
      outGradient: all.outGradient,
      rstd: all.rstd,
      out: all.out,
      inputGradient: all.inputGradient,
      ...(!isRms && { mean: all.mean }),
      ...(hasWeight && { weight: all.weight, weightGradient: all.weightGradient }),
      ...(hasBias && { bias: all.bias, biasGradient: all.biasGradient }),
    };
    norm(target, operands, { ...shape, eps });
    normBackward(target, operands, shape);
  };

/** Groups of whole quads and of lanes; in chunks, in one, and so small that invocations own them. */
export const groupCases: readonly NormCase[] = [
  { batch: 2, pixels: 300, groups: 4, width: 16 },
  { batch: 2, pixels: 300, groups: 3, width: 10, storage: "float16" },
  { batch: 3, pixels: 16, groups: 2, width: 16, storage: "bfloat16" },
  { batch: 1, pixels: 500, groups: 5, width: 8, isRms: true, affine: "none" },
  { batch: 5, pixels: 3, groups: 2, width: 4 },
  { batch: 7, pixels: 1, groups: 1, width: 301 },
];

/** The names of results. */
export const results: readonly (
  | "mean"
  | "rstd"
  | "out"
  | "inputGradient"
  | "weightGradient"
  | "biasGradient"
)[] = ["mean", "rstd", "out", "inputGradient", "weightGradient", "biasGradient"];

export const title = ({ batch, pixels, groups, width, storage = "float32" }: NormCase): string =>
  `[${batch},${pixels},${groups},${width}] ${storage}`;

/** How far results may differ from those of the CPU. */
export const toleranceOf = (
  { storage = "float32", batch, pixels }: NormCase,
  margin: number,
): { readonly relative: number; readonly absolute: number } => ({
  relative: margin * 2 ** -23 + (storage === "float32" ? 0 : 2 * unitRoundoff[storage]),
  // Sums over batch and pixels of terms near 1.
  absolute: margin * 2 ** -23 * Math.max(4, Math.sqrt(batch * pixels)),
});

/** Where a norm differs from the CPU's, on each of some targets. */
export async function placeMismatches(
  device: Device,
  attributes: NormCase,
  places: readonly (<B>(target: LaunchTarget<B>) => LaunchTarget<B>)[],
  operands: NormOperands = operandsOf(attributes),
): Promise<readonly string[]> {
  const want = runOnCpu(operands, launchesOf(attributes));
  const found: string[] = [];
  for (const place of places) {
    const got = await runOnGpu(device, operands, (target, bindings) =>
      launchesOf(attributes)(place(target), bindings),
    );
    for (const name of results)
      found.push(
        ...mismatches(got[name], want[name], toleranceOf(attributes, 32)).map(
          (text) => `${title(attributes)} ${name}${text}`,
        ),
      );
  }
  return found;
}

/** The same of rows with outliers at their beginnings. */
export function outlierMismatches(
  device: Device,
  attributes: NormCase,
  places: readonly (<B>(target: LaunchTarget<B>) => LaunchTarget<B>)[],
): Promise<readonly string[]> {
  const operands = operandsOf(attributes);
  // Where a row is summed about its first elements, one of them far away must not cost the others their digits.
  for (let row = 0; row < attributes.batch; row++)
    operands.input.values[row * attributes.width] = row % 2 ? 3000 : -1e5;
  return placeMismatches(device, attributes, places, operands);
}
