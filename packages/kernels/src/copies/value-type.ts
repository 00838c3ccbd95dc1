import { type DType, floatingDTypes } from "@halfstep/device";

/** Storage of kernels that move elements and compute nothing. */
export const anyDType: readonly DType[] = [...floatingDTypes, "uint32", "int32"];

/** The WGSL type in which an element of this storage is loaded. */
export const valueType = (dtype: DType | undefined): "u32" | "i32" | "f32" =>
  dtype === "uint32" ? "u32" : dtype === "int32" ? "i32" : "f32";
