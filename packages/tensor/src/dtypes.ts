import { type DType, floatingDTypes } from "@halfstep/device";

/** Every dtype of tensors. */
export const dtypes: readonly DType[] = [...floatingDTypes, "int32", "uint32"];

export const isFloating = (dtype: DType): boolean => dtype !== "int32" && dtype !== "uint32";

/** @throws TypeError for a dtype that tensors do not have */
export function requireDType(dtype: DType): void {
  if (!dtypes.includes(dtype))
    throw new TypeError(`there is no dtype "${dtype}": tensors have ${dtypes.join(", ")}`);
}
