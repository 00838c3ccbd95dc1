import type { Expression } from "../elementwise.js";
import { expOf, keepingNan, logOf } from "../wgsl/transcendental.js";
import { unary, withScalar } from "./builders.js";

export const exp: Expression = {
  ...unary("exp", (x) => `exp_value(${x})`, Math.exp),
  functions: expOf("exp_value"),
};
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
