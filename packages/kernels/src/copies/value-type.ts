import { type DType, floatingDTypes } from "@halfstep/device";
import { domainOf, scalarType } from "../domain.js";

/** Storage of kernels that move elements and compute nothing. */
export const anyDType: readonly DType[] = [...floatingDTypes, "uint32", "int32"];

/** The WGSL type in which an element of this storage is loaded. */
export const valueType = (dtype: DType = "float32"): "u32" | "i32" | "f32" =>
  scalarType(domainOf(dtype));
