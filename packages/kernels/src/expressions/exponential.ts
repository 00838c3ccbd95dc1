import type { Expression } from "../elementwise.js";
import { formula } from "../formula/formula.js";
import { constant, leaf, select, type Term } from "../formula/term.js";
import { logOf, noNumber } from "../wgsl/transcendental.js";
import { keepingNan } from "./guards.js";

// Functions whose WGSL built-ins are inaccurate or lose NaN. JavaScript has all of them in float64.

/** eˣ. */
export const exp: Expression = formula("exp", (x) => keepingNan(x, x.exp()));

const naturalLog = leaf({ name: "natural", functions: logOf, evaluate: Math.log });

/** The natural logarithm. */
export const log: Expression = formula("log", (x) => naturalLog(x));

const scalarPower = leaf({
  name: "scalar",
  arity: 2,
  scalars: 1,
  functions: (name) => /* wgsl */ `
fn ${name}_magnitude(x: vec4f, n: f32, whole: bool) -> vec4f {
  if (n == 0.5) { return sqrt(x); }
  if (!whole || n > 64.0) {
    // Adapters differ in the logarithm of 0 and of infinity: a power of either is itself.
    let a = abs(x);
    let bits = bitcast<vec4u>(a);
    return select(exp2(n * log2(a)), a, (bits == vec4u(0u)) | (bits == vec4u(0x7f800000u)));
  }
  var result = vec4f(1.0);
  var factor = x;
  for (var k = u32(n); k > 0u; k >>= 1u) {
    if ((k & 1u) == 1u) { result *= factor; }
    factor *= factor;
  }
  return result;
}
fn ${name}_scalar(x: vec4f, c: f32) -> vec4f {
  let n = abs(c);
  let whole = n == floor(n);
  var y = ${name}_magnitude(x, n, whole);
  if (whole && n > 64.0 && n < 16777216.0 && fract(n * 0.5) != 0.0) {
    y = select(y, -y, x < vec4f(0.0));
  }
  // The root of a negative number is the NaN that WGSL has no constant for. Other broken powers know −∞, as in C.
  let is_lost = (x < vec4f(0.0)) & ((bitcast<vec4u>(x) != vec4u(0xff800000u)) | vec4<bool>(n == 0.5));
  if (!whole) { y = select(y, sqrt(x), is_lost); }
  if (c < 0.0) { return 1.0 / y; }
  return y;
}
fn ${name}(x: vec4f, c: f32) -> vec4f {
  let exponent = bitcast<u32>(c) & 0x7fffffffu;
  // One to any power is one, and so is minus one to an infinite one.
  if (exponent > 0x7f800000u) { return select(vec4f(c), vec4f(1.0), x == vec4f(1.0)); }
  if (c == 0.0) { return vec4f(1.0); }
  let is_nan = (bitcast<vec4u>(x) & vec4u(0x7fffffffu)) > vec4u(0x7f800000u);
  let y = select(${name}_scalar(x, c), x, is_nan);
  if (exponent == 0x7f800000u) { return select(y, vec4f(1.0), abs(x) == vec4f(1.0)); }
  return y;
}
`,
  evaluate(x, c) {
    if (x === 1 || (x === -1 && Math.abs(c) === Number.POSITIVE_INFINITY)) return 1;
    return x < 0 && Math.abs(c) === 0.5 ? Number.NaN : x ** c;
  },
});

/**
 * x to the power c. Whole powers up to 64 are products, and 0.5 is a root, as in torch. Other powers have an error of about |c · log2 x|
 * units in the last place. The error of WGSL's own `pow` is larger, and negative bases give NaN. One to any power is 1, and so is −1 to an
 * infinite one, as in C; otherwise a power of or to NaN is NaN, except to 0.
 */
export const pow: Expression = formula("pow", (x, c) => scalarPower(x, c), { scalars: 1 });

const accurateTanh = leaf({
  name: "accurate",
  functions: (name) => /* wgsl */ `
fn ${name}(x: vec4f) -> vec4f {
  let z = x * x;
  let p = (((-5.70498872745e-3 * z + 2.06390887954e-2) * z - 5.37397155531e-2) * z + 1.33314422036e-1) * z - 3.33332819422e-1;
  let a = abs(x);
  let large = 1.0 - 2.0 / (exp(2.0 * select(a, vec4f(10.0), a > vec4f(10.0))) + 1.0);
  return select(select(large, -large, x < vec4f(0.0)), x + x * z * p, a < vec4f(0.625));
}
`,
  evaluate: Math.tanh,
});

/** WGSL's own tanh is wrong by a factor of 200 below 1e-9. Below 0.625 this is the polynomial of Cephes' tanhf, good to 2 ulp. */
export const tanh: Expression = formula("tanh", (x) => keepingNan(x, accurateTanh(x)));

// log(1 + x) from -1/2 to 1: twice the inverse hyperbolic tangent of x / (2 + x), without cancellation.
const nearLogOf = (name: string): string => /* wgsl */ `
fn ${name}(x: vec4f) -> vec4f {
  let z = x / (2.0 + x);
  let s = z * z;
  let p = s * (0.333333333 + s * (0.2 + s * (0.142857143 + s * (0.111111111 + s * (0.0909090909 + s * (0.0769230769 + s * 0.0666666667))))));
  return 2.0 * (z + z * p);
}
`;

const accurateLog1p = leaf({
  name: "accurate",
  functions: (name) => /* wgsl */ `${nearLogOf(`${name}_near`)}${logOf(`${name}_far`)}
fn ${name}(x: vec4f) -> vec4f {
  let near = (x > vec4f(-0.5)) & (x < vec4f(1.0));
  return select(${name}_far(1.0 + x), ${name}_near(select(vec4f(0.0), x, near)), near);
}
`,
  evaluate: Math.log1p,
});

/** log(1 + x), relatively exact near 0. */
export const log1p: Expression = formula("log1p", (x) => keepingNan(x, accurateLog1p(x)));

// WGSL's own logarithm has only a small absolute error near 1; a small relative error is required.
const logarithm = (name: string, factor: number, evaluate: (x: number) => number): Expression => {
  const accurate = leaf({
    name: "accurate",
    functions: (name) => /* wgsl */ `${nearLogOf(`${name}_near`)}${logOf(`${name}_far`)}
fn ${name}(x: vec4f) -> vec4f {
  let near = (x > vec4f(0.5)) & (x < vec4f(2.0));
  return select(${name}_far(x), ${name}_near(select(vec4f(0.0), x - 1.0, near)), near) * ${factor};
}
`,
    evaluate,
  });
  return formula(name, (x) => keepingNan(x, accurate(x)));
};

/** The logarithm to base 2. */
export const log2: Expression = logarithm("log2", Math.LOG2E, Math.log2);
/** The logarithm to base 10. */
export const log10: Expression = logarithm("log10", Math.LOG10E, Math.log10);

/** exp(x) - 1, by its series near 0. Adapters may lose NaN. */
export const accurateExpm1: (x: Term) => Term = leaf({
  name: "expm1",
  functions: (name) => /* wgsl */ `
fn ${name}(x: vec4f) -> vec4f {
  let p = 0.5 + x * (0.166666667 + x * (0.0416666667 + x * (8.33333333e-3 + x * (1.38888889e-3 + x * (1.98412698e-4 + x * 2.48015873e-5)))));
  return select(exp(x) - 1.0, x + x * x * p, abs(x) < vec4f(0.5));
}
`,
  evaluate: Math.expm1,
});

/** exp(x) - 1, relatively exact near 0. */
export const expm1: Expression = formula("expm1", (x) => keepingNan(x, accurateExpm1(x)));

const accurateSinh = leaf({
  name: "accurate",
  functions: (name) => /* wgsl */ `
fn ${name}(x: vec4f) -> vec4f {
  let a = abs(x);
  let z = x * x;
  let near = ((2.03721912945e-4 * z + 8.33028376239e-3) * z + 1.66667160211e-1) * z * x + x;
  let e = exp(min(a, vec4f(80.0)));
  let root = exp(0.5 * a);
  let far = select(0.5 * e - 0.5 / e, (0.5 * root) * root, a > vec4f(80.0));
  return select(select(far, -far, x < vec4f(0.0)), near, a < vec4f(1.0));
}
`,
  evaluate: Math.sinh,
});

/** Below 1 the polynomial of Cephes' sinhf. */
export const sinh: Expression = formula("sinh", (x) => keepingNan(x, accurateSinh(x)));

const accurateCosh = leaf({
  name: "accurate",
  functions: (name) => /* wgsl */ `
fn ${name}(x: vec4f) -> vec4f {
  let a = abs(x);
  let e = exp(min(a, vec4f(80.0)));
  let root = exp(0.5 * a);
  return select(0.5 * e + 0.5 / e, (0.5 * root) * root, a > vec4f(80.0));
}
`,
  evaluate: Math.cosh,
});

/** (exp(x) + exp(−x)) / 2. */
export const cosh: Expression = formula("cosh", (x) => keepingNan(x, accurateCosh(x)));

const power = leaf({
  name: "power",
  arity: 2,
  functions: (name) => /* wgsl */ `${noNumber(`${name}_no_number`)}
fn ${name}_nan(v: vec4f) -> vec4<bool> { return (bitcast<vec4u>(v) & vec4u(0x7fffffffu)) > vec4u(0x7f800000u); }
fn ${name}_infinite(v: vec4f) -> vec4<bool> { return (bitcast<vec4u>(v) & vec4u(0x7fffffffu)) == vec4u(0x7f800000u); }
fn ${name}(x: vec4f, y: vec4f) -> vec4f {
  let a = abs(x);
  let is_zero = (bitcast<vec4u>(x) & vec4u(0x7fffffffu)) == vec4u(0u);
  let is_huge = ${name}_infinite(x);
  let one = vec4f(1.0);
  let infinity = bitcast<vec4f>(min(bitcast<vec4u>(x), vec4u(1u)) * 0u + vec4u(0x7f800000u));
  // Where both are ordinary numbers; what overflows there is infinite.
  let inner = !(is_zero | is_huge | ${name}_infinite(y));
  let ordinary = exp2(select(one, y, inner) * log2(select(one, a, inner)));
  let grows = (a > one) == (y > vec4f(0.0));
  let ends = select(vec4f(0.0), infinity, grows);
  let magnitude = select(ends, ordinary, inner);
  let whole = (floor(y) == y) | ${name}_infinite(y);
  let odd = whole & (abs(y) < vec4f(16777216.0)) & (fract(y * 0.5) != vec4f(0.0));
  let is_negative = (bitcast<vec4u>(x) >> vec4u(31u)) == vec4u(1u);
  let signed = select(magnitude, -magnitude, is_negative & odd);
  let lost = is_negative & !whole & !is_zero & !is_huge;
  let known = select(signed, ${name}_no_number(x), lost | ${name}_nan(x) | ${name}_nan(y));
  let is_one = (bitcast<vec4u>(y) & vec4u(0x7fffffffu)) == vec4u(0u);
  return select(known, one, is_one | (x == one) | ((x == -one) & ${name}_infinite(y)));
}
`,
  evaluate: (x, y) =>
    y === 0 || x === 1 || (x === -1 && Math.abs(y) === Number.POSITIVE_INFINITY) ? 1 : x ** y,
});

/**
 * The first operand to the power of the second, with the special cases of C and torch. The error is about |y · log2 x| units in the last
 * place.
 */
export const powTensor: Expression = formula("powTensor", (x, y) => power(x, y));

const nearLog1p = leaf({ name: "log1p", functions: nearLogOf, evaluate: Math.log1p });

/** log(1 + exp(β x)) / β, and x itself where β x is above the threshold. Scalars: β, threshold. */
export const softplus: Expression = formula(
  "softplus",
  (x, beta, threshold) => {
    const z = x.mul(beta);
    const y = z.max(0).add(nearLog1p(z.abs().neg().exp())).div(beta);
    return select(z.gt(threshold).or(x.isNan()), x, y);
  },
  { scalars: 2 },
);

/** 1 / (1 + exp(−x)), without overflow. Adapters may lose NaN. */
export function logistic(x: Term): Term {
  const e = x.abs().neg().exp();
  return select(x.lt(0), e, 1).div(constant(1).add(e));
}

/** The derivative of softplus times the gradient, of (gradient, x). */
export const softplusBackward: Expression = formula(
  "softplusBackward",
  (g, x, beta, threshold) => {
    const z = x.mul(beta);
    return keepingNan(x, g.mul(select(z.gt(threshold), 1, logistic(z))));
  },
  { scalars: 2 },
);
