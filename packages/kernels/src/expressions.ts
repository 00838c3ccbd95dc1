import type { Expression } from "./elementwise.js";
import { expOf, keepingNan, logOf } from "./wgsl/transcendental.js";

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
export const exp: Expression = {
  ...unary("exp", (x) => `exp_value(${x})`, Math.exp),
  functions: expOf("exp_value"),
};
export const log: Expression = {
  ...unary("log", (x) => `log_value(${x})`, Math.log),
  functions: logOf("log_value"),
};
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

/**
 * x to the power c. Whole powers up to 64 are products, and 0.5 is a root, as in torch; other powers lose about |c · log2 x|
 * units in the last place, fewer than WGSL's own `pow`, which also loses every negative base.
 */
export const pow: Expression = {
  ...withScalar(
    "pow",
    (x, c) => `pow_value(${x}, ${c})`,
    (x, c) => (x < 0 && !Number.isInteger(c) ? Number.NaN : x ** c),
  ),
  functions: /* wgsl */ `
fn pow_magnitude(x: vec4f, n: f32, whole: bool) -> vec4f {
  if (n == 0.5) { return sqrt(x); }
  if (!whole || n > 64.0) { return exp2(n * log2(abs(x))); }
  var result = vec4f(1.0);
  var factor = x;
  for (var k = u32(n); k > 0u; k >>= 1u) {
    if ((k & 1u) == 1u) { result *= factor; }
    factor *= factor;
  }
  return result;
}
fn pow_scalar(x: vec4f, c: f32) -> vec4f {
  let n = abs(c);
  let whole = n == floor(n);
  var y = pow_magnitude(x, n, whole);
  if (whole && n > 64.0 && n < 16777216.0 && fract(n * 0.5) != 0.0) {
    y = select(y, -y, x < vec4f(0.0));
  }
  // The root of a negative number is the NaN that WGSL has no constant for.
  if (!whole) { y = select(y, sqrt(x), x < vec4f(0.0)); }
  if (c < 0.0) { return 1.0 / y; }
  return y;
}
fn pow_value(x: vec4f, c: f32) -> vec4f {
  if (c == 0.0) { return vec4f(1.0); }
  let is_nan = (bitcast<vec4u>(x) & vec4u(0x7fffffffu)) > vec4u(0x7f800000u);
  return select(pow_scalar(x, c), x, is_nan);
}
`,
};

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

/** WGSL's own tanh is 200 times off below 1e-9. Below 0.625 this is the polynomial of Cephes' tanhf, good to 2 ulp. */
export const tanh: Expression = {
  ...unary("tanh", (x) => `tanh_value(${x})`, Math.tanh),
  functions: /* wgsl */ `
fn tanh_accurate(x: vec4f) -> vec4f {
  let z = x * x;
  let p = (((-5.70498872745e-3 * z + 2.06390887954e-2) * z - 5.37397155531e-2) * z + 1.33314422036e-1) * z - 3.33332819422e-1;
  let a = abs(x);
  let large = 1.0 - 2.0 / (exp(2.0 * select(a, vec4f(10.0), a > vec4f(10.0))) + 1.0);
  return select(select(large, -large, x < vec4f(0.0)), x + x * z * p, a < vec4f(0.625));
}
${keepingNan("tanh_value", "tanh_accurate(x)")}`,
};

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

// erfc to 1.2e-7 relatively (Press et al., Numerical Recipes, "erfcc").
const erfcOf = (name: string): string => /* wgsl */ `
fn ${name}(x: vec4f) -> vec4f {
  let z = abs(x);
  let t = 1.0 / (1.0 + 0.5 * z);
  let p = t * (1.00002368 + t * (0.37409196 + t * (0.09678418 + t * (-0.18628806 + t * (0.27886807 + t * (-1.13520398 + t * (1.48851587 + t * (-0.82215223 + t * 0.17087277))))))));
  let tail = t * exp(-z * z - 1.26551223 + p);
  return select(tail, 2.0 - tail, x < vec4f(0.0));
}
`;

/** The error function. Below 0.5 by its series, elsewhere as 1 - erfc: relatively exact to 3e-7. */
export const erf: Expression = {
  ...unary("erf", (x) => `erf_accurate(${x})`, errorFunction),
  functions: /* wgsl */ `${erfcOf("erf_complement")}
fn erf_accurate(x: vec4f) -> vec4f {
  let z = x * x;
  let p = 1.0 - z * (0.333333333 - z * (0.1 - z * (0.0238095238 - z * (0.00462962963 - z * 0.000757575758))));
  return select(1.0 - erf_complement(x), 1.12837917 * x * p, abs(x) < vec4f(0.5));
}
`,
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

function unary(
  name: string,
  wgsl: (x: string) => string,
  evaluate: (x: number) => number,
): Expression {
  return {
    name,
    arity: 1,
    wgsl: (x) => wgsl(x[0] as string),
    evaluate: (x) => evaluate(x[0] as number),
  };
}

function binary(
  name: string,
  wgsl: (a: string, b: string) => string,
  evaluate: (a: number, b: number) => number,
): Expression {
  return {
    name,
    arity: 2,
    wgsl: (x) => wgsl(x[0] as string, x[1] as string),
    evaluate: (x) => evaluate(x[0] as number, x[1] as number),
  };
}

function withScalar(
  name: string,
  wgsl: (x: string, c: string) => string,
  evaluate: (x: number, c: number) => number,
): Expression {
  return {
    name,
    arity: 1,
    scalars: 1,
    wgsl: (x, c) => wgsl(x[0] as string, c[0] as string),
    evaluate: (x, c) => evaluate(x[0] as number, c[0] as number),
  };
}

function comparison(
  name: string,
  operator: string,
  holds: (a: number, b: number) => boolean,
): Expression {
  return {
    ...binary(
      name,
      (a, b) => `${name}_ordered(${a}, ${b})`,
      (a, b) => (holds(a, b) ? 1 : 0),
    ),
    functions: orderedComparison(`${name}_ordered`, operator),
  };
}

// WGSL may assume that NaN does not occur: only its bits tell.
function orderedComparison(name: string, operator: string): string {
  return /* wgsl */ `
fn ${name}(a: vec4f, b: vec4f) -> vec4f {
  let infinity = vec4u(0x7f800000u);
  let ordered = ((bitcast<vec4u>(a) & vec4u(0x7fffffffu)) <= infinity) & ((bitcast<vec4u>(b) & vec4u(0x7fffffffu)) <= infinity);
  return select(vec4f(0.0), vec4f(1.0), ordered & (a ${operator} b));
}
`;
}

function pickNan(name: string, builtin: string): string {
  return /* wgsl */ `
fn ${name}(a: vec4f, b: vec4f) -> vec4f {
  let infinity = vec4u(0x7f800000u);
  let y = select(${builtin}(a, b), b, (bitcast<vec4u>(b) & vec4u(0x7fffffffu)) > infinity);
  return select(y, a, (bitcast<vec4u>(a) & vec4u(0x7fffffffu)) > infinity);
}
`;
}

/** erf in float64: its series near 0, its continued fraction in the tails. */
function errorFunction(x: number): number {
  if (!(Math.abs(x) < 2.5)) return 1 - erfc(x);
  let term = x;
  let sum = x;
  for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(sum); n++) {
    term *= (-x * x) / n;
    sum += term / (2 * n + 1);
  }
  return (2 / Math.sqrt(Math.PI)) * sum;
}

function erfc(x: number): number {
  const z = Math.abs(x);
  if (z < 2.5) return 1 - errorFunction(x);
  let fraction = 0;
  for (let n = 60; n > 0; n--) fraction = n / 2 / (z + fraction);
  const tail = Math.exp(-z * z) / Math.sqrt(Math.PI) / (z + fraction);
  return x < 0 ? 2 - tail : tail;
}
