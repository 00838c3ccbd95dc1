import type { Launch } from "@halfstep/device";
import type { Storage } from "./storage.js";

let isRepeating = false;

/**
 * Calls `fn` as a recomputation: launches that write variables are left out, because the first call has recorded them.
 */
export function repeating<T>(fn: () => T): T {
  const before = isRepeating;
  isRepeating = true;
  try {
    return fn();
  } finally {
    isRepeating = before;
  }
}

/** Whether a recomputation runs, for kernels that compute results and write variables in one launch. */
export const isRecomputation = (): boolean => isRepeating;

/** Whether a launch is left out of a recomputation because it writes variables. */
export const isRepeatedWrite = ({ kernel, bindings }: Launch<Storage>): boolean =>
  isRepeating &&
  bindings.some(({ buffer }, b) => buffer.isResident && kernel.bindings[b]?.access !== "read");
