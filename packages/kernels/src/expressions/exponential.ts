import type { Expression } from "../elementwise.js";
import { expOf, keepingNan, logOf, noNumber } from "../wgsl/transcendental.js";
import { binary, numbers, unary, withScalar } from "./builders.js";

/** eˣ. */
export const exp: Expression = {
  ...unary("exp", (x) => `exp_value(${x})`, Math.exp),
  functions: expOf("exp_value"),
};
/** The natural logarithm. */
export const log: Expression = {
  ...unary("log", (x) => `log_value(${x})`, Math.log),
  functions: logOf("log_value"),
};

/**
 * x to the power c. Whole powers up to 64 are products, and 0.5 is a root, as in torch; other powers lose about |c · log2 x|
 * units in the last place, fewer than WGSL's own `pow`, which also loses every negative base.
 */
export const pow: Expression = {
  ...withScalar(
    "pow",
    (x, c) => `pow_value(${x}, ${c})`,
    (x, c) => (x < 0 && Math.abs(c) === 0.5 ? Number.NaN : x ** c),
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
  // The root of a negative number is the NaN that WGSL has no constant for. Other broken powers know −∞, as in C.
  let is_lost = (x < vec4f(0.0)) & ((bitcast<vec4u>(x) != vec4u(0xff800000u)) | vec4<bool>(n == 0.5));
  if (!whole) { y = select(y, sqrt(x), is_lost); }
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

// log(1 + x) from -1/2 to 1: twice the inverse hyperbolic tangent of x / (2 + x), which cancels nothing.
const nearLogOf = (name: string): string => /* wgsl */ `
fn ${name}(x: vec4f) -> vec4f {
  let z = x / (2.0 + x);
  let s = z * z;
  let p = s * (0.333333333 + s * (0.2 + s * (0.142857143 + s * (0.111111111 + s * (0.0909090909 + s * (0.0769230769 + s * 0.0666666667))))));
  return 2.0 * (z + z * p);
}
`;

/** log(1 + x), relatively exact near 0. */
export const log1p: Expression = {
  ...unary("log1p", (x) => `log1p_value(${x})`, Math.log1p),
  functions: /* wgsl */ `${nearLogOf("log1p_near")}${logOf("log1p_far")}
fn log1p_finite(x: vec4f) -> vec4f {
  let near = (x > vec4f(-0.5)) & (x < vec4f(1.0));
  return select(log1p_far(1.0 + x), log1p_near(select(vec4f(0.0), x, near)), near);
}
${keepingNan("log1p_value", "log1p_finite(x)")}`,
};

// WGSL's own logarithm errs absolutely near 1, where it should be relatively exact.
const logarithm = (name: string, factor: number, evaluate: (x: number) => number): Expression => ({
  ...unary(name, (x) => `${name}_value(${x})`, evaluate),
  functions: /* wgsl */ `${nearLogOf(`${name}_near`)}${logOf(`${name}_far`)}
fn ${name}_finite(x: vec4f) -> vec4f {
  let near = (x > vec4f(0.5)) & (x < vec4f(2.0));
  return select(${name}_far(x), ${name}_near(select(vec4f(0.0), x - 1.0, near)), near) * ${factor};
}
${keepingNan(`${name}_value`, `${name}_finite(x)`)}`,
});

/** The logarithm to base 2. */
export const log2: Expression = logarithm("log2", Math.LOG2E, Math.log2);
/** The logarithm to base 10. */
export const log10: Expression = logarithm("log10", Math.LOG10E, Math.log10);

/** WGSL `fn name(x: vec4f) -> vec4f`: exp(x) - 1, by its series near 0; NaN for NaN. */
export const expm1Of = (name: string): string => /* wgsl */ `
fn ${name}_any(x: vec4f) -> vec4f {
  let p = 0.5 + x * (0.166666667 + x * (0.0416666667 + x * (8.33333333e-3 + x * (1.38888889e-3 + x * (1.98412698e-4 + x * 2.48015873e-5)))));
  return select(exp(x) - 1.0, x + x * x * p, abs(x) < vec4f(0.5));
}
${keepingNan(name, `${name}_any(x)`)}`;

/** exp(x) - 1, relatively exact near 0. */
export const expm1: Expression = {
  ...unary("expm1", (x) => `expm1_value(${x})`, Math.expm1),
  functions: expm1Of("expm1_value"),
};

/** Below 1 the polynomial of Cephes' sinhf. */
export const sinh: Expression = {
  ...unary("sinh", (x) => `sinh_value(${x})`, Math.sinh),
  functions: /* wgsl */ `
fn sinh_any(x: vec4f) -> vec4f {
  let a = abs(x);
  let z = x * x;
  let near = ((2.03721912945e-4 * z + 8.33028376239e-3) * z + 1.66667160211e-1) * z * x + x;
  let e = exp(min(a, vec4f(80.0)));
  let root = exp(0.5 * a);
  let far = select(0.5 * e - 0.5 / e, (0.5 * root) * root, a > vec4f(80.0));
  return select(select(far, -far, x < vec4f(0.0)), near, a < vec4f(1.0));
}
${keepingNan("sinh_value", "sinh_any(x)")}`,
};

/** (exp(x) + exp(−x)) / 2. */
export const cosh: Expression = {
  ...unary("cosh", (x) => `cosh_value(${x})`, Math.cosh),
  functions: /* wgsl */ `
fn cosh_any(x: vec4f) -> vec4f {
  let a = abs(x);
  let e = exp(min(a, vec4f(80.0)));
  let root = exp(0.5 * a);
  return select(0.5 * e + 0.5 / e, (0.5 * root) * root, a > vec4f(80.0));
}
${keepingNan("cosh_value", "cosh_any(x)")}`,
};

const power = (x: number, y: number): number =>
  y === 0 || x === 1 || (x === -1 && Math.abs(y) === Number.POSITIVE_INFINITY) ? 1 : x ** y;

/** The first operand to the power of the second, with the special cases of C and torch; it errs by about |y · log2 x| units in the last place. */
export const powTensor: Expression = {
  ...binary("powTensor", (x, y) => `powTensor_value(${x}, ${y})`, power),
  functions: /* wgsl */ `${noNumber("powTensor_no_number")}
fn powTensor_nan(v: vec4f) -> vec4<bool> { return (bitcast<vec4u>(v) & vec4u(0x7fffffffu)) > vec4u(0x7f800000u); }
fn powTensor_infinite(v: vec4f) -> vec4<bool> { return (bitcast<vec4u>(v) & vec4u(0x7fffffffu)) == vec4u(0x7f800000u); }
fn powTensor_value(x: vec4f, y: vec4f) -> vec4f {
  let a = abs(x);
  let is_zero = (bitcast<vec4u>(x) & vec4u(0x7fffffffu)) == vec4u(0u);
  let is_huge = powTensor_infinite(x);
  let one = vec4f(1.0);
  let infinity = bitcast<vec4f>(min(bitcast<vec4u>(x), vec4u(1u)) * 0u + vec4u(0x7f800000u));
  // Where both are ordinary numbers; what overflows there is infinite.
  let inner = !(is_zero | is_huge | powTensor_infinite(y));
  let ordinary = exp2(select(one, y, inner) * log2(select(one, a, inner)));
  let grows = (a > one) == (y > vec4f(0.0));
  let ends = select(vec4f(0.0), infinity, grows);
  let magnitude = select(ends, ordinary, inner);
  let whole = (floor(y) == y) | powTensor_infinite(y);
  let odd = whole & (abs(y) < vec4f(16777216.0)) & (fract(y * 0.5) != vec4f(0.0));
  let is_negative = (bitcast<vec4u>(x) >> vec4u(31u)) == vec4u(1u);
  let signed = select(magnitude, -magnitude, is_negative & odd);
  let lost = is_negative & !whole & !is_zero & !is_huge;
  let known = select(signed, powTensor_no_number(x), lost | powTensor_nan(x) | powTensor_nan(y));
  let is_one = (bitcast<vec4u>(y) & vec4u(0x7fffffffu)) == vec4u(0u);
  return select(known, one, is_one | (x == one) | ((x == -one) & powTensor_infinite(y)));
}
`,
};

/** log(1 + exp(β x)) / β, and x itself where β x is above the threshold. Scalars: β, threshold. */
export const softplus: Expression = {
  name: "softplus",
  arity: 1,
  scalars: 2,
  wgsl: ([x], [beta, threshold]) => `softplus_value(${x}, ${beta}, ${threshold})`,
  evaluate: numbers(1, (x, beta, threshold) => {
    const z = x * beta;
    if (z > threshold) return x as number;
    return (Math.max(z, 0) + Math.log1p(Math.exp(-Math.abs(z)))) / beta;
  }),
  functions: /* wgsl */ `${nearLogOf("softplus_log1p")}
fn softplus_value(x: vec4f, beta: f32, threshold: f32) -> vec4f {
  let z = x * beta;
  let y = (max(z, vec4f(0.0)) + softplus_log1p(exp(-abs(z)))) / beta;
  let is_nan = (bitcast<vec4u>(x) & vec4u(0x7fffffffu)) > vec4u(0x7f800000u);
  return select(y, x, (z > vec4f(threshold)) | is_nan);
}
`,
};

/** The derivative of softplus times the gradient, of (gradient, x). */
export const softplusBackward: Expression = {
  name: "softplusBackward",
  arity: 2,
  scalars: 2,
  wgsl: ([g, x], [beta, threshold]) => `softplusBackward_value(${g}, ${x}, ${beta}, ${threshold})`,
  evaluate: numbers(2, (g, x, beta, threshold) => {
    const z = x * beta;
    return g * (z > threshold ? 1 : 1 / (1 + Math.exp(-z)));
  }),
  functions: /* wgsl */ `
fn softplusBackward_value(g: vec4f, x: vec4f, beta: f32, threshold: f32) -> vec4f {
  let z = x * beta;
  let e = exp(-abs(z));
  let slope = select(vec4f(1.0), e, z < vec4f(0.0)) / (1.0 + e);
  let is_nan = (bitcast<vec4u>(x) & vec4u(0x7fffffffu)) > vec4u(0x7f800000u);
  return select(g * select(slope, vec4f(1.0), z > vec4f(threshold)), x, is_nan);
}
`,
};
