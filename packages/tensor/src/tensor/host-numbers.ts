import { isInteger, toInteger } from "@halfstep/formats/dtypes";
import type { Tensor } from "./tensor.js";

/** The numbers of which the open step has made a tensor; undefined for what it computes, and outside of steps. */
export function hostNumbersOf({ storage, offset, size, dtype }: Tensor): Float64Array | undefined {
  const { hostData } = storage;
  if (!hostData || offset !== 0 || hostData.length !== size) return undefined;
  const numbers = Float64Array.from(hostData);
  return isInteger(dtype) ? numbers.map((x) => toInteger(dtype, x)) : numbers;
}
