import type { Expression } from "../elementwise.js";
import { unary } from "./builders.js";

// erfc to 1.2e-7 relatively (Press et al., Numerical Recipes, "erfcc").
export const erfcOf = (name: string): string => /* wgsl */ `
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

/** erf in float64: its series near 0, its continued fraction in the tails. */
export function errorFunction(x: number): number {
  if (!(Math.abs(x) < 2.5)) return 1 - erfc(x);
  let term = x;
  let sum = x;
  for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(sum); n++) {
    term *= (-x * x) / n;
    sum += term / (2 * n + 1);
  }
  return (2 / Math.sqrt(Math.PI)) * sum;
}

export function erfc(x: number): number {
  const z = Math.abs(x);
  if (z < 2.5) return 1 - errorFunction(x);
  let fraction = 0;
  for (let n = 60; n > 0; n--) fraction = n / 2 / (z + fraction);
  const tail = Math.exp(-z * z) / Math.sqrt(Math.PI) / (z + fraction);
  return x < 0 ? 2 - tail : tail;
}
