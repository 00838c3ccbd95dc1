import type { Expression } from "../elementwise.js";
import { formula } from "../formula/formula.js";
import { leaf } from "../formula/term.js";
import { noNumber } from "../wgsl/transcendental.js";
import { keepingNan } from "./guards.js";

/**
 * `fn name_reduce(x: f32) -> vec2f`: the multiple of π/2 nearest to x, modulo 4, and the remainder of x. WGSL guarantees sines to
 * 2⁻¹¹ between -π and π only. This multiplies by the bits of 2/π (Payne and Hanek, 1983) in integers, which compilers do not
 * reorder, and so is exact for every float32.
 */
const reductionOf = (name: string): string => /* wgsl */ `
fn ${name}_wide(a: u32, b: u32) -> vec2u {
  let low = (a & 0xffffu) * (b & 0xffffu);
  let middle = (a >> 16u) * (b & 0xffffu) + (low >> 16u);
  let carry = (a & 0xffffu) * (b >> 16u) + (middle & 0xffffu);
  return vec2u(a * b, (a >> 16u) * (b >> 16u) + (middle >> 16u) + (carry >> 16u));
}
fn ${name}_reduce(x: f32) -> vec2f {
  let bits = bitcast<u32>(x) & 0x7fffffffu;
  if (bits < 0x3f000000u || bits >= 0x7f800000u) { return vec2f(0.0, x); }
  var two_over_pi = array<u32, 8>(0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu);
  // From here on the bits weigh, times x, less than 4.
  let first = (bits >> 23u) - 120u;
  let word = first >> 5u;
  let shift = first & 31u;
  var w: vec3u;
  for (var i = 0u; i < 3u; i++) {
    let next = select(two_over_pi[word + i + 1u] >> (32u - shift), 0u, shift == 0u);
    w[i] = (two_over_pi[word + i] << shift) | next;
  }
  let mantissa = (bits & 0x7fffffu) | 0x800000u;
  let p2 = ${name}_wide(mantissa, w.z);
  let p1 = ${name}_wide(mantissa, w.y);
  let middle = p2.y + p1.x;
  let high = p1.y + mantissa * w.x + select(0u, 1u, middle < p2.y);
  var fraction = vec2u((high << 2u) | (middle >> 30u), (middle << 2u) | (p2.x >> 30u));
  let up = (fraction.x >> 31u) == 1u;
  if (up) { fraction = vec2u(~fraction.x, ~fraction.y); }
  let zeros = min(countLeadingZeros(fraction.x), 31u);
  let top = (fraction.x << zeros) | select(fraction.y >> (32u - zeros), 0u, zeros == 0u);
  let magnitude = f32(top) * bitcast<f32>((95u - zeros) << 23u) * 1.5707963267948966;
  let quadrant = f32(((high >> 30u) + select(0u, 1u, up)) & 3u);
  let signed = select(magnitude, -magnitude, up);
  return select(vec2f(quadrant, signed), vec2f((4.0 - quadrant) % 4.0, -signed), x < 0.0);
}
`;

/** `name_sincos(x)`: both by the polynomials of Cephes' sinf, for an angle of up to π/4. */
const polynomialsOf = (name: string): string => /* wgsl */ `
fn ${name}_sin(x: vec4f) -> vec4f {
  let z = x * x;
  return ((-1.9515295891e-4 * z + 8.3321608736e-3) * z - 1.6666654611e-1) * z * x + x;
}
fn ${name}_cos(x: vec4f) -> vec4f {
  let z = x * x;
  return ((2.443315711809948e-5 * z - 1.388731625493765e-3) * z + 4.166664568298827e-2) * z * z - 0.5 * z + 1.0;
}
`;

/** A function of the quadrant `q`, of `sine` and of `cosine`; NaN for NaN and the infinities. */
const circular =
  (value: string) =>
  (name: string): string =>
    /* wgsl */ `
${reductionOf(name)}${polynomialsOf(name)}${noNumber(`${name}_nan`)}
fn ${name}(x: vec4f) -> vec4f {
  var q: vec4f;
  var r: vec4f;
  for (var i = 0u; i < 4u; i++) {
    let reduced = ${name}_reduce(x[i]);
    q[i] = reduced.x;
    r[i] = reduced.y;
  }
  let sine = ${name}_sin(r);
  let cosine = ${name}_cos(r);
  let odd = (q % 2.0) == vec4f(1.0);
  let is_finite = (bitcast<vec4u>(x) & vec4u(0x7fffffffu)) < vec4u(0x7f800000u);
  return select(${name}_nan(x), ${value}, is_finite);
}
`;

const sine = leaf({
  name: "sine",
  functions: circular(
    "select(select(sine, cosine, odd), -select(sine, cosine, odd), q >= vec4f(2.0))",
  ),
  evaluate: Math.sin,
});

/** The sine of an angle in radians. */
export const sin: Expression = formula("sin", (x) => sine(x));

/** WGSL `fn name(x: vec4f) -> vec4f`: the cosine. */
export const cosOf: (name: string) => string = circular(
  "select(select(cosine, sine, odd), -select(cosine, sine, odd), (q == vec4f(1.0)) | (q == vec4f(2.0)))",
);

const cosine = leaf({ name: "cosine", functions: cosOf, evaluate: Math.cos });

/** The cosine of an angle in radians. */
export const cos: Expression = formula("cos", (x) => cosine(x));

const tangent = leaf({
  name: "tangent",
  functions: circular("select(sine, -cosine, odd) / select(cosine, sine, odd)"),
  evaluate: Math.tan,
});

/** The tangent of an angle in radians. */
export const tan: Expression = formula("tan", (x) => tangent(x));

/** Cephes' atanf, for numbers from 0 to infinity. */
const atanOf = (name: string): string => /* wgsl */ `
fn ${name}_positive(a: vec4f) -> vec4f {
  let steep = a > vec4f(2.414213562373095);
  let middle = a > vec4f(0.4142135623730950);
  let finite = min(a, vec4f(1e30));
  let x = select(select(finite, (finite - 1.0) / (finite + 1.0), middle), -1.0 / max(finite, vec4f(1.0)), steep);
  let start = select(select(vec4f(0.0), vec4f(0.7853981633974483), middle), vec4f(1.5707963267948966), steep);
  let z = x * x;
  return start + ((((8.05374449538e-2 * z - 1.38776856032e-1) * z + 1.99777106478e-1) * z - 3.33329491539e-1) * z * x + x);
}
`;

const arctangent = leaf({
  name: "arctangent",
  functions: (name) => /* wgsl */ `${atanOf(name)}
fn ${name}(x: vec4f) -> vec4f {
  let y = ${name}_positive(abs(x));
  return select(y, -y, x < vec4f(0.0));
}
`,
  evaluate: Math.atan,
});

/** The angle from −π/2 to π/2 whose tangent is x. */
export const atan: Expression = formula("atan", (x) => keepingNan(x, arctangent(x)));

const angle = leaf({
  name: "angle",
  arity: 2,
  functions: (name) => /* wgsl */ `${atanOf(name)}
fn ${name}_nan(v: vec4f) -> vec4<bool> { return (bitcast<vec4u>(v) & vec4u(0x7fffffffu)) > vec4u(0x7f800000u); }
fn ${name}(y: vec4f, x: vec4f) -> vec4f {
  let high = max(abs(x), abs(y));
  let low = min(abs(x), abs(y));
  let infinity = vec4u(0x7f800000u);
  let both = bitcast<vec4u>(low) == infinity;
  let none = (bitcast<vec4u>(high) == vec4u(0u)) | ((bitcast<vec4u>(high) == infinity) & !both);
  // Numbers near the ends of the range are moved away from them, where their quotient would be lost.
  let shift = select(select(vec4f(1.0), vec4f(0x1p60), high < vec4f(0x1p-60)), vec4f(0x1p-60), high > vec4f(0x1p60));
  let quotient = (low * shift) / (high * shift);
  let ratio = select(select(quotient, vec4f(0.0), none), vec4f(1.0), both);
  let octant = ${name}_positive(ratio);
  let quadrant = select(octant, 1.5707963267948966 - octant, abs(y) > abs(x));
  let is_left = (bitcast<vec4u>(x) >> vec4u(31u)) == vec4u(1u);
  let half = select(quadrant, 3.141592653589793 - quadrant, is_left);
  let is_below = (bitcast<vec4u>(y) >> vec4u(31u)) == vec4u(1u);
  let angle = select(half, -half, is_below);
  return select(select(angle, x, ${name}_nan(x)), y, ${name}_nan(y));
}
`,
  evaluate: Math.atan2,
});

/** The angle of the point (x, y) of the operands (y, x), from -π to π. */
export const atan2: Expression = formula("atan2", (y, x) => angle(y, x));

/** `fn name_tail(a: vec4f) -> vec4f`: Cephes' asinf for a from 0 to 1/2, else half of π/2 minus it. */
const arcsineOf = (name: string): string => /* wgsl */ `${noNumber(`${name}_nan`)}
fn ${name}_tail(a: vec4f) -> vec4f {
  let far = a > vec4f(0.5);
  let z = select(a * a, 0.5 * (1.0 - min(a, vec4f(1.0))), far);
  let s = select(a, sqrt(z), far);
  return ((((4.2163199048e-2 * z + 2.4181311049e-2) * z + 4.5470025998e-2) * z + 7.4953002686e-2) * z + 1.6666752422e-1) * z * s + s;
}
`;

const arcsine = leaf({
  name: "arcsine",
  functions: (name) => /* wgsl */ `${arcsineOf(name)}
fn ${name}(x: vec4f) -> vec4f {
  let a = abs(x);
  let tail = ${name}_tail(a);
  let y = select(tail, 1.5707963267948966 - 2.0 * tail, a > vec4f(0.5));
  let inside = (bitcast<vec4u>(x) & vec4u(0x7fffffffu)) <= vec4u(0x3f800000u);
  return select(${name}_nan(x), select(y, -y, x < vec4f(0.0)), inside);
}
`,
  evaluate: Math.asin,
});

/** The angle from −π/2 to π/2 whose sine is x. */
export const asin: Expression = formula("asin", (x) => arcsine(x));

const arccosine = leaf({
  name: "arccosine",
  functions: (name) => /* wgsl */ `${arcsineOf(name)}
fn ${name}(x: vec4f) -> vec4f {
  let a = abs(x);
  let tail = ${name}_tail(a);
  let far = select(2.0 * tail, 3.141592653589793 - 2.0 * tail, x < vec4f(0.0));
  let near = 1.5707963267948966 - select(tail, -tail, x < vec4f(0.0));
  let inside = (bitcast<vec4u>(x) & vec4u(0x7fffffffu)) <= vec4u(0x3f800000u);
  return select(${name}_nan(x), select(near, far, a > vec4f(0.5)), inside);
}
`,
  evaluate: Math.acos,
});

/** The angle from 0 to π whose cosine is x. */
export const acos: Expression = formula("acos", (x) => arccosine(x));
