import { ScalerStateError } from "../src/index.js";

/** The mistake that a call is refused for, and what the error says: "double-step: step() was already …". */
export function mistakeOf(call: () => unknown): string {
  try {
    call();
  } catch (error) {
    if (error instanceof ScalerStateError) {
      return `${(error as ScalerStateError).mistake}: ${(error as ScalerStateError).message}`;
    }
    throw error;
  }
  return "no mistake";
}
