import type { Expression } from "../elementwise.js";
import { keepingNan } from "../wgsl/transcendental.js";
import { binary, unary } from "./builders.js";
import { erfc, erfcOf } from "./error-function.js";

/** max(x, 0). NaN stays NaN, which WGSL's `max` would swallow. */
export const relu: Expression = unary(
  "relu",
  (x) => `select(${x}, vec4f(0.0), ${x} <= vec4f(0.0))`,
  (x) => (x <= 0 ? 0 : x),
);

/** The gradient of relu from (dy, y): 0 where y ≤ 0, else dy, as torch's threshold_backward. */
export const reluBackward: Expression = binary(
  "reluBackward",
  (dy, y) => `select(${dy}, vec4f(0.0), ${y} <= vec4f(0.0))`,
  (dy, y) => (y <= 0 ? 0 : dy),
);

const sigmoidOf = (name: string): string => /* wgsl */ `
fn ${name}_finite(x: vec4f) -> vec4f {
  let e = exp(-abs(x));
  return select(vec4f(1.0), e, x < vec4f(0.0)) / (1.0 + e);
}
${keepingNan(name, `${name}_finite(x)`)}`;

const logistic = (x: number): number => {
  const e = Math.exp(-Math.abs(x));
  return (x < 0 ? e : 1) / (1 + e);
};

/** 1 / (1 + exp(-x)) */
export const sigmoid: Expression = {
  ...unary("sigmoid", (x) => `sigmoid_stable(${x})`, logistic),
  functions: sigmoidOf("sigmoid_stable"),
};

/** x · sigmoid(x) */
export const silu: Expression = {
  ...unary(
    "silu",
    (x) => `${x} * silu_sigmoid(${x})`,
    (x) => x * logistic(x),
  ),
  functions: sigmoidOf("silu_sigmoid"),
};

/** x · Φ(x), with Φ the normal distribution: torch's default gelu. */
export const gelu: Expression = {
  ...unary(
    "gelu",
    (x) => `0.5 * ${x} * gelu_erfc(${x} * -0.70710678)`,
    (x) => 0.5 * x * erfc(-x * Math.SQRT1_2),
  ),
  functions: erfcOf("gelu_erfc"),
};

/** gelu by its tanh approximation, torch's `approximate="tanh"`: (1 + tanh u) / 2 is sigmoid(2u), which cancels nothing. */
export const geluTanh: Expression = {
  ...unary(
    "geluTanh",
    (x) => `${x} * geluTanh_sigmoid(1.5957691 * (${x} + 0.044715 * ${x} * ${x} * ${x}))`,
    (x) => x * logistic(2 * Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)),
  ),
  functions: sigmoidOf("geluTanh_sigmoid"),
};
