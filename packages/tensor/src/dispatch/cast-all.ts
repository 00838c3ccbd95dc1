import type { DType } from "@halfstep/device";
import { isFloating } from "@halfstep/formats/dtypes";
import { mapTensors } from "../arguments/tensors-in.js";
import { castOperand, castTo } from "./cast.js";

/** Casts the floating tensors in a value: the value itself, or those in nested arrays and plain objects. */
export function castAll<T>(value: T, dtype: DType): T {
  return castBelow(value, dtype, castTo) as T;
}

/** {@link castAll} for operands that only one function reads: see {@link castOperand}. */
export function castOperands<T>(value: T, dtype: DType): T {
  return castBelow(value, dtype, castOperand) as T;
}

const castBelow = (value: unknown, dtype: DType, cast: typeof castTo): unknown =>
  mapTensors(value, (x) => (isFloating(x.dtype) ? cast(x, dtype) : x));
