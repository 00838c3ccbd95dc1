import { leaf, select, type Term } from "../formula/term.js";
import { noNumber } from "../wgsl/transcendental.js";

/** y, and NaN where x is NaN: adapters may lose it on the way. */
export const keepingNan = (x: Term, y: Term): Term => select(x.isNan(), x, y);

/** NaN, whatever the operand is; a formula has no constant for it. */
export const nan: (x: Term) => Term = leaf({
  name: "nan",
  functions: noNumber,
  evaluate: () => Number.NaN,
});
