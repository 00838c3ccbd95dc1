import { allDTypes, type DType } from "@halfstep/formats/dtypes";

/** @throws TypeError for a dtype that tensors do not have */
export function requireDType(dtype: DType): void {
  if (!allDTypes.includes(dtype))
    throw new TypeError(`there is no dtype "${dtype}": tensors have ${allDTypes.join(", ")}`);
}
