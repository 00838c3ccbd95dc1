import type { Operator } from "./call.js";
import { elementwise } from "./elementwise.js";
import { layers } from "./layers.js";
import { shapes } from "./shapes.js";

/** How each operator is computed, by its name. */
export const operators: Readonly<Record<string, Operator>> = Object.assign(
  Object.create(null) as Record<string, Operator>,
  elementwise,
  layers,
  shapes,
);

/** Operators that compute element by element from operands of one layout. */
export const layoutFree: ReadonlySet<string> = new Set(
  Object.keys(elementwise).filter((name) => name !== "Where" && name !== "PRelu"),
);
