import type { DType } from "@halfstep/device";
import { castTo, isFloating } from "./cast.js";
import { isTensor } from "./is-tensor.js";

/** A value with its floating tensors cast: itself, or those in arrays and plain objects, nested as they may be. */
export function castAll<T>(value: T, dtype: DType): T {
  return castBelow(value, dtype) as T;
}

function castBelow(value: unknown, dtype: DType): unknown {
  if (isTensor(value)) return isFloating(value.dtype) ? castTo(value, dtype) : value;
  if (Array.isArray(value)) return value.map((item) => castBelow(item, dtype));
  if (typeof value !== "object" || value === null) return value;
  if (Object.getPrototypeOf(value) !== Object.prototype) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, castBelow(item, dtype)]),
  );
}
