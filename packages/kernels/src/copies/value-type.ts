import { allDTypes, type DType } from "@halfstep/formats/dtypes";
import { domainOf, scalarType } from "../domain.js";

/** Storage of kernels that move elements without computing. */
export const anyDType: readonly DType[] = allDTypes;

/** The WGSL type of a loaded element of this storage. */
export const valueType = (dtype: DType = "float32"): "u32" | "i32" | "f32" =>
  scalarType(domainOf(dtype));
