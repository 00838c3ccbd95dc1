import type { Expression } from "../elementwise.js";
import { binary, comparison, orderedComparison } from "./builders.js";

/** where(mask, a, b): a where the mask is not 0, b elsewhere. The operand not chosen may be anything. */
export const where: Expression = {
  name: "where",
  arity: 3,
  wgsl: ([mask, a, b]) =>
    `select(${b}, ${a}, (bitcast<vec4u>(${mask}) & vec4u(0x7fffffffu)) != vec4u(0u))`,
  evaluate: (x) => (x[0] !== 0 ? x[1] : x[2]) as number,
};

/** Comparisons give 1 or 0. With NaN all are 0, except `ne`. */
export const gt: Expression = comparison("gt", ">", (a, b) => a > b);
export const ge: Expression = comparison("ge", ">=", (a, b) => a >= b);
export const lt: Expression = comparison("lt", "<", (a, b) => a < b);
export const le: Expression = comparison("le", "<=", (a, b) => a <= b);
export const eq: Expression = comparison("eq", "==", (a, b) => a === b);
export const ne: Expression = {
  ...binary(
    "ne",
    (a, b) => `1.0 - ne_equal(${a}, ${b})`,
    (a, b) => (a !== b ? 1 : 0),
  ),
  functions: orderedComparison("ne_equal", "=="),
};
