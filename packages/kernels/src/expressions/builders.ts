import type { Expression } from "../elementwise.js";

/**
 * WGSL over quads of numbers: where they are NaN. Compilers may assume that NaN and the infinities do not occur, and turn a comparison
 * with a selection into a `max` that swallows NaN; the bits decide.
 */
export const isNanWgsl = (x: string): string =>
  `((bitcast<vec4u>(${x}) & vec4u(0x7fffffffu)) > vec4u(0x7f800000u))`;

/** WGSL over quads of numbers: where they are NaN or infinite. */
export const isNonFiniteWgsl = (x: string): string =>
  `((bitcast<vec4u>(${x}) & vec4u(0x7f800000u)) == vec4u(0x7f800000u))`;

export function unary(
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

export function binary(
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

export function withScalar(
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

/** The `evaluate` of an expression, from a function of its operands and then its scalars, four numbers at most. */
export const numbers =
  (
    arity: number,
    evaluate: (a: number, b: number, c: number, d: number) => number,
  ): Expression["evaluate"] =>
  (x, c) => {
    const at = (k: number): number => (k < arity ? x[k] : c[k - arity]) as number;
    return evaluate(at(0), at(1), at(2), at(3));
  };
