import { type ScalerMistake, ScalerStateError } from "./errors.js";
import type { ScaledOptimizer } from "./primitives.js";

/** Refuses a call. */
export function refuse(mistake: ScalerMistake, message: string): never {
  throw new ScalerStateError(mistake, message);
}

/** The name of an optimizer in errors: its parameters, if it lists them. */
export function nameOf<B>(optimizer: ScaledOptimizer<B>): string {
  const names = [...(optimizer.parameterNames?.() ?? [])];
  if (names.length === 0) return "this optimizer";
  const shown = names.slice(0, 3).map((name) => `"${name}"`);
  const more = names.length > 3 ? ` and ${names.length - 3} more` : "";
  return `the optimizer of ${shown.join(", ")}${more}`;
}
