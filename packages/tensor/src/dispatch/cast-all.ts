import type { DType } from "@halfstep/device";
import { isTensor } from "../arguments/is-tensor.js";
import { isFloating } from "../dtypes.js";
import { castOperand, castTo } from "./cast.js";

/** A value with its floating tensors cast: itself, or those in arrays and plain objects, nested as they may be. */
export function castAll<T>(value: T, dtype: DType): T {
  return castBelow(value, dtype, castTo) as T;
}

/** {@link castAll} for what a function reads, and nobody else: see {@link castOperand}. */
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
