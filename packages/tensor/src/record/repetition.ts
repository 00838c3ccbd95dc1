import type { Launch } from "@halfstep/device";
import type { Storage } from "./storage.js";

let isRepeating = false;

/** Calls `fn`, which does again what it did before: the variables that it changes have changed already. */
export function repeating<T>(fn: () => T): T {
  const before = isRepeating;
  isRepeating = true;
  try {
    return fn();
  } finally {
    isRepeating = before;
  }
}

/** Whether a function runs again that has changed its variables already: what computes and writes in one launch asks. */
export const isRecomputation = (): boolean => isRepeating;

/** Whether a launch is left out because a function runs again: the variables that it changes have changed already. */
export const isRepeatedWrite = ({ kernel, bindings }: Launch<Storage>): boolean =>
  isRepeating &&
  bindings.some(({ buffer }, b) => buffer.isResident && kernel.bindings[b]?.access !== "read");
