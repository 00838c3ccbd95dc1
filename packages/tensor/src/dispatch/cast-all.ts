import type { DType } from "@halfstep/device";
import { isFloating } from "@halfstep/formats/dtypes";
import { isTensor } from "../arguments/is-tensor.js";
import { castOperand, castTo } from "./cast.js";

/** Casts the floating tensors in a value: the value itself, or those in nested arrays and plain objects. */
export function castAll<T>(value: T, dtype: DType): T {
  return castBelow(value, dtype, castTo) as T;
}

/** {@link castAll} for operands that only one function reads: see {@link castOperand}. */
export function castOperands<T>(value: T, dtype: DType): T {
  return castBelow(value, dtype, castOperand) as T;
}

function castBelow(value: unknown, dtype: DType, cast: typeof castTo): unknown {
  if (isTensor(value)) return isFloating(value.dtype) ? cast(value, dtype) : value;
  if (Array.isArray(value)) return value.map((item) => castBelow(item, dtype, cast));
  if (typeof value !== "object" || value === null) return value;
  if (Object.getPrototypeOf(value) !== Object.prototype) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, castBelow(item, dtype, cast)]),
  );
}
