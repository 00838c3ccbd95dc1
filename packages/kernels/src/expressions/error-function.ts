import type { Expression } from "../elementwise.js";
import { formula } from "../formula/formula.js";
import { leaf, type Term } from "../formula/term.js";
import { logOf } from "../wgsl/transcendental.js";

// erfc with a relative error of 1.2e-7 (Press et al., Numerical Recipes, "erfcc").
const erfcOf = (name: string): string => /* wgsl */ `
fn ${name}(x: vec4f) -> vec4f {
  let z = abs(x);
  let t = 1.0 / (1.0 + 0.5 * z);
  let p = t * (1.00002368 + t * (0.37409196 + t * (0.09678418 + t * (-0.18628806 + t * (0.27886807 + t * (-1.13520398 + t * (1.48851587 + t * (-0.82215223 + t * 0.17087277))))))));
  let tail = t * exp(-z * z - 1.26551223 + p);
  return select(tail, 2.0 - tail, x < vec4f(0.0));
}
`;

/** 1 − erf. Float64 has more digits than its WGSL. */
export const erfc: (x: Term) => Term = leaf({
  name: "erfc",
  functions: erfcOf,
  evaluate: complement,
});

const accurateErf = leaf({
  name: "accurate",
  functions: (name) => /* wgsl */ `${erfcOf(`${name}_complement`)}
fn ${name}(x: vec4f) -> vec4f {
  let z = x * x;
  let p = 1.0 - z * (0.333333333 - z * (0.1 - z * (0.0238095238 - z * (0.00462962963 - z * 0.000757575758))));
  return select(1.0 - ${name}_complement(x), 1.12837917 * x * p, abs(x) < vec4f(0.5));
}
`,
  evaluate: errorFunction,
});

/** The error function. Below 0.5 by its series, elsewhere as 1 - erfc: the relative error is at most 3e-7. */
export const erf: Expression = formula("erf", (x) => accurateErf(x));

const inverse = leaf({
  name: "inverse",
  functions: (name) => /* wgsl */ `${logOf(`${name}_log`)}
fn ${name}(x: vec4f) -> vec4f {
  let w = -${name}_log((1.0 - x) * (1.0 + x));
  let c = w - 2.5;
  let t = sqrt(max(w, vec4f(0.0))) - 3.0;
  let centre = 1.50140941 + c * (0.246640727 + c * (-0.00417768164 + c * (-0.00125372503 + c * (0.000218580870 + c * (-4.39150654e-6 + c * (-3.5233877e-6 + c * (3.43273939e-7 + c * 2.81022636e-8)))))));
  let tail = 2.83297682 + t * (1.00167406 + t * (0.00943887047 + t * (-0.0076224613 + t * (0.00573950773 + t * (-0.00367342844 + t * (0.00134934322 + t * (0.000100950558 + t * -0.000200214257)))))));
  let y = x * select(tail, centre, w < vec4f(5.0));
  // Outside (-1, 1) the logarithm is infinite or NaN: so is the result.
  let is_end = (bitcast<vec4u>(w) & vec4u(0x7f800000u)) == vec4u(0x7f800000u);
  return select(y, x * w, is_end);
}
`,
  evaluate: inverseErrorFunction,
});

/** The inverse of erf (Giles, "Approximating the erfinv function", 2010), with a relative error of about 1e-6. */
export const erfinv: Expression = formula("erfinv", (x) => inverse(x));

/** An approximation by Winitzki, made exact by Halley's method. */
function inverseErrorFunction(x: number): number {
  const p = Math.abs(x);
  if (!(p < 1)) return p === 1 ? x * Number.POSITIVE_INFINITY : Number.NaN;
  const a = 0.147;
  const log = Math.log1p(-p * p);
  const b = 2 / (Math.PI * a) + log / 2;
  let y = Math.sqrt(Math.sqrt(b * b - log / a) - b);
  for (let step = 0; step < 4; step++) {
    // In the tail only the complement has enough precision.
    const error = p < 0.5 ? errorFunction(y) - p : 1 - p - complement(y);
    const newton = error / ((2 / Math.sqrt(Math.PI)) * Math.exp(-y * y));
    y -= newton / (1 + y * newton);
  }
  return x < 0 ? -y : y;
}

/** erf in float64: its series near 0, its continued fraction in the tails. */
function errorFunction(x: number): number {
  if (!(Math.abs(x) < 2.5)) return 1 - complement(x);
  let term = x;
  let sum = x;
  for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(sum); n++) {
    term *= (-x * x) / n;
    sum += term / (2 * n + 1);
  }
  return (2 / Math.sqrt(Math.PI)) * sum;
}

function complement(x: number): number {
  const z = Math.abs(x);
  if (z < 2.5) return 1 - errorFunction(x);
  let fraction = 0;
  for (let n = 60; n > 0; n--) fraction = n / 2 / (z + fraction);
  const tail = Math.exp(-z * z) / Math.sqrt(Math.PI) / (z + fraction);
  return x < 0 ? 2 - tail : tail;
}
