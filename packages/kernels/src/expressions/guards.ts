import { leaf, select, type Term } from "../formula/term.js";
import { noNumber } from "../wgsl/transcendental.js";

/** y, and NaN where x is NaN: adapters may lose NaN in between. */
export const keepingNan = (x: Term, y: Term): Term => select(x.isNan(), x, y);

/** NaN for every operand; formulas have no constant for it. */
export const nan: (x: Term) => Term = leaf({
  name: "nan",
  functions: noNumber,
  evaluate: () => Number.NaN,
});
