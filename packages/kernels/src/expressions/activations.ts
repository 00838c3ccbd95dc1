import type { Expression } from "../elementwise.js";
import { expOf, keepingNan, noNumber } from "../wgsl/transcendental.js";
import { binary, isNanWgsl, isNonFiniteWgsl, numbers, unary, withScalar } from "./builders.js";
import { erfc, erfcOf } from "./error-function.js";
import { expm1Of } from "./exponential.js";

// From the bits of −0 to those of −∞: NaN is none of them, whatever its sign.
const hasMinus = (x: string): string =>
  `((bitcast<vec4u>(${x}) - vec4u(0x80000000u)) <= vec4u(0x7f800000u))`;

// From the bits of the least number above 0 to those of ∞.
const isPositive = (x: string | undefined): string =>
  `((bitcast<vec4u>(${x}) - vec4u(1u)) < vec4u(0x7f800000u))`;

/** max(x, 0). NaN stays NaN, which WGSL's `max` would swallow. */
export const relu: Expression = unary(
  "relu",
  (x) => `select(${x}, vec4f(0.0), ${hasMinus(x)})`,
  (x) => (x <= 0 ? 0 : x),
);

/** The gradient of relu from (dy, y): 0 where y ≤ 0, else dy, at NaN too, as torch's threshold_backward. */
export const reluBackward: Expression = binary(
  "reluBackward",
  (dy, y) => `select(${dy}, vec4f(0.0), ${hasMinus(y)} | (bitcast<vec4u>(${y}) == vec4u(0u)))`,
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

/** The gradient of silu, of (gradient, x). NaN at the infinities, as in torch: a scaler must see that an activation was infinite. */
export const siluBackward: Expression = {
  ...binary(
    "siluBackward",
    (g, x) => `siluBackward_value(${g}, ${x})`,
    (g, x) => {
      const s = logistic(x);
      return g * (s * (1 + x * (1 - s)));
    },
  ),
  functions: `${sigmoidOf("siluBackward_sigmoid")}${noNumber("siluBackward_nan")}
fn siluBackward_value(g: vec4f, x: vec4f) -> vec4f {
  let s = siluBackward_sigmoid(x);
  return select(g * (s * (1.0 + x * (1.0 - s))), siluBackward_nan(x), ${isNonFiniteWgsl("x")});
}
`,
};

/** The gradient of gelu, of (gradient, x). NaN at the infinities, as in torch. */
export const geluBackward: Expression = {
  ...binary(
    "geluBackward",
    (g, x) => `geluBackward_value(${g}, ${x})`,
    (g, x) => {
      const density = Math.exp(-0.5 * x * x) / Math.sqrt(2 * Math.PI);
      return g * (0.5 * erfc(-x * Math.SQRT1_2) + x * density);
    },
  ),
  functions: `${erfcOf("geluBackward_erfc")}${noNumber("geluBackward_nan")}
fn geluBackward_value(g: vec4f, x: vec4f) -> vec4f {
  // Beyond 20 the exponential is 0, and the square may overflow.
  let t = select(x, vec4f(20.0), abs(x) > vec4f(20.0));
  let y = g * (0.5 * geluBackward_erfc(x * -0.70710678) + 0.3989422804 * t * exp(-0.5 * t * t));
  return select(y, geluBackward_nan(x), ${isNonFiniteWgsl("x")});
}
`,
};

/** The gradient of gelu by its tanh approximation, of (gradient, x). NaN at the infinities, as in torch. */
export const geluTanhBackward: Expression = {
  ...binary(
    "geluTanhBackward",
    (g, x) => `geluTanhBackward_value(${g}, ${x})`,
    (g, x) => {
      const k = 2 * Math.sqrt(2 / Math.PI);
      const s = logistic(k * (x + 0.044715 * x ** 3));
      if (Math.abs(x) > 20 && Number.isFinite(x)) return g * s;
      return g * (s + x * s * (1 - s) * k * (1 + 3 * 0.044715 * x * x));
    },
  ),
  functions: `${sigmoidOf("geluTanhBackward_sigmoid")}${noNumber("geluTanhBackward_nan")}
fn geluTanhBackward_value(g: vec4f, x: vec4f) -> vec4f {
  // Beyond 20 the slope is 0 or 1 to the last bit, and its terms overflow.
  let t = clamp(x, vec4f(-20.0), vec4f(20.0));
  let s = geluTanhBackward_sigmoid(1.5957691 * (t + 0.044715 * t * t * t));
  let y = g * (s + t * s * (1.0 - s) * 1.5957691 * (1.0 + 0.134145 * t * t));
  return select(y, geluTanhBackward_nan(x), ${isNonFiniteWgsl("x")});
}
`,
};

/** x above 0, else α (exp(x) - 1). Scalar: α. */
export const elu: Expression = {
  ...withScalar(
    "elu",
    (x, alpha) => `elu_value(${x}, ${alpha})`,
    (x, alpha) => (x > 0 ? x : alpha * Math.expm1(x)),
  ),
  functions: `${expm1Of("elu_expm1")}
fn elu_value(x: vec4f, alpha: f32) -> vec4f {
  return select(alpha * elu_expm1(min(x, vec4f(0.0))), x, (x > vec4f(0.0)) | ${isNanWgsl("x")});
}
`,
};

/** The gradient of elu, of (gradient, x). Scalar: α. */
export const eluBackward: Expression = {
  name: "eluBackward",
  arity: 2,
  scalars: 1,
  wgsl: ([g, x], [alpha]) =>
    `${g} * select(${alpha} * eluBackward_exp(${x}), vec4f(1.0), ${x} > vec4f(0.0))`,
  evaluate: numbers(2, (g, x, alpha) => g * (x > 0 ? 1 : alpha * Math.exp(x))),
  functions: expOf("eluBackward_exp"),
};

/** x above 0, else c · x. */
export const leakyRelu: Expression = withScalar(
  "leakyRelu",
  (x, c) => `select(${x}, ${x} * ${c}, ${hasMinus(x)})`,
  (x, c) => (x < 0 ? x * c : x),
);

/** The gradient of leakyRelu, of (gradient, x): the gradient above 0, else c times it, at NaN too. */
export const leakyReluBackward: Expression = {
  name: "leakyReluBackward",
  arity: 2,
  scalars: 1,
  wgsl: ([g, x], [c]) => `select(${g} * ${c}, ${g}, ${isPositive(x)})`,
  evaluate: numbers(2, (g, x, c) => (x > 0 ? g : g * c)),
};

/** From (x, weight): x above 0, else weight · x. */
export const prelu: Expression = binary(
  "prelu",
  (x, w) => `select(${w} * ${x}, ${x}, ${isPositive(x)})`,
  (x, w) => (x > 0 ? x : w * x),
);

/** From (gradient, x, weight): the gradient above 0, else weight times it, at NaN too. */
export const preluBackward: Expression = {
  name: "preluBackward",
  arity: 3,
  wgsl: ([g, x, w]) => `select(${w} * ${g}, ${g}, ${isPositive(x)})`,
  evaluate: numbers(3, (g, x, w) => (x > 0 ? g : w * g)),
};

/** From (gradient, x): 0 above 0, else gradient · x, at NaN too. */
export const preluWeightGradient: Expression = binary(
  "preluWeightGradient",
  (g, x) => `select(${g} * ${x}, vec4f(0.0), ${isPositive(x)})`,
  (g, x) => (x > 0 ? 0 : g * x),
);
