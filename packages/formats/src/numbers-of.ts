import { sourceOf } from "./arrays/arguments.js";
import { decodeArray, type Numbers } from "./arrays.js";

/**
 * Numbers to read by index: arrays of codes are decoded, others stay what they are.
 * @throws TypeError if `values` is no array of numbers, or its buffer is detached.
 */
export function numbersOf(operation: string, values: Numbers): ArrayLike<number> {
  const source = sourceOf(operation, values);
  return source.kind === "codes" ? decodeArray(source.values, source.format) : source.values;
}
