import type { DType } from "@halfstep/formats/dtypes";
import type { LaunchView, OperandView } from "./step-view.js";

/** "f16" of float16, "bf16" of bfloat16, "u32" of uint32. */
export const shortName = (dtype: DType): string =>
  dtype.replace("float", "f").replace("uint", "u").replace("int", "i");

/** How an operand is stored, and to what it is rounded on the way: "f32 → f16" is read in float32 and rounded to float16. */
export function storageText({ access, dtype, rounding }: OperandView): string {
  if (!rounding) return shortName(dtype);
  const [stored, rounded] = [shortName(dtype), shortName(rounding)];
  return access === "read" ? `${stored} → ${rounded}` : `${rounded} → ${stored}`;
}

/** What a launch is called: a launch of `identity` changes the dtype and nothing else. */
export const launchName = ({ kernel }: LaunchView): string =>
  kernel === "identity" ? "cast" : kernel;

/** With the module that it belongs to. */
export const launchTitle = (launch: LaunchView): string =>
  launch.module === "" ? launchName(launch) : `${launchName(launch)} of ${launch.module}`;
