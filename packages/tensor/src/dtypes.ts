import { allDTypes, type DType, isFloating } from "@halfstep/formats/dtypes";

/** @throws TypeError for a dtype that tensors do not have */
export function requireDType(dtype: DType): void {
  if (!allDTypes.includes(dtype))
    throw new TypeError(`there is no dtype "${dtype}": tensors have ${allDTypes.join(", ")}`);
}

/** @throws TypeError where integers are to have a gradient */
export function requireDifferentiable(
  call: string,
  dtype: DType,
  { requiresGrad }: { readonly requiresGrad?: boolean },
): void {
  if (requiresGrad && !isFloating(dtype))
    throw new TypeError(`${call}: only floating tensors have gradients, and this one is ${dtype}`);
}
