import type { Expression } from "../elementwise.js";
import { binary, pickNan, unary, withScalar } from "./builders.js";

/** y = x: what a cast or a copy computes. */
export const identity: Expression = unary(
  "identity",
  (x) => x,
  (x) => x,
);

export const add: Expression = binary(
  "add",
  (a, b) => `${a} + ${b}`,
  (a, b) => a + b,
);
export const sub: Expression = binary(
  "sub",
  (a, b) => `${a} - ${b}`,
  (a, b) => a - b,
);
export const mul: Expression = binary(
  "mul",
  (a, b) => `${a} * ${b}`,
  (a, b) => a * b,
);
export const div: Expression = binary(
  "div",
  (a, b) => `${a} / ${b}`,
  (a, b) => a / b,
);

export const neg: Expression = unary(
  "neg",
  (x) => `-${x}`,
  (x) => -x,
);
export const abs: Expression = unary("abs", (x) => `abs(${x})`, Math.abs);
export const square: Expression = unary(
  "square",
  (x) => `${x} * ${x}`,
  (x) => x * x,
);
export const reciprocal: Expression = unary(
  "reciprocal",
  (x) => `1.0 / ${x}`,
  (x) => 1 / x,
);

export const sqrt: Expression = unary("sqrt", (x) => `sqrt(${x})`, Math.sqrt);
export const rsqrt: Expression = unary(
  "rsqrt",
  (x) => `inverseSqrt(${x})`,
  (x) => 1 / Math.sqrt(x),
);

/** -1, 0 or 1; NaN stays NaN and zeros keep their sign, as in NumPy. */
export const sign: Expression = unary(
  "sign",
  (x) => `select(select(${x}, vec4f(-1.0), ${x} < vec4f(0.0)), vec4f(1.0), ${x} > vec4f(0.0))`,
  (x) => (x > 0 ? 1 : x < 0 ? -1 : x),
);

/** x · c */
export const scale: Expression = withScalar(
  "scale",
  (x, c) => `${x} * ${c}`,
  (x, c) => x * c,
);

/** x + c */
export const addScalar: Expression = withScalar(
  "addScalar",
  (x, c) => `${x} + ${c}`,
  (x, c) => x + c,
);

/** The larger operand; NaN if either is, as torch.maximum. */
export const maximum: Expression = {
  ...binary(
    "maximum",
    (a, b) => `maximum_of(${a}, ${b})`,
    (a, b) => Math.max(a, b),
  ),
  functions: pickNan("maximum_of", "max"),
};

/** The smaller operand; NaN if either is, as torch.minimum. */
export const minimum: Expression = {
  ...binary(
    "minimum",
    (a, b) => `minimum_of(${a}, ${b})`,
    (a, b) => Math.min(a, b),
  ),
  functions: pickNan("minimum_of", "min"),
};
