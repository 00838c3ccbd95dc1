import type { Expression } from "../elementwise.js";
import { comparedIntegers } from "./integer-forms.js";

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

/** An expression that only adds and multiplies its operands. */
export const arithmetic = (expression: Expression): Expression => ({
  ...expression,
  isArithmetic: true,
});

export function comparison(
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
    result: "uint32",
    integers: comparedIntegers(operator, holds),
    functions: orderedComparison(`${name}_ordered`, operator),
  };
}

// WGSL may assume that NaN does not occur: only its bits tell.
export function orderedComparison(name: string, operator: string): string {
  return /* wgsl */ `
fn ${name}(a: vec4f, b: vec4f) -> vec4u {
  let infinity = vec4u(0x7f800000u);
  let ordered = ((bitcast<vec4u>(a) & vec4u(0x7fffffffu)) <= infinity) & ((bitcast<vec4u>(b) & vec4u(0x7fffffffu)) <= infinity);
  return select(vec4u(0u), vec4u(1u), ordered & (a ${operator} b));
}
`;
}

export function pickNan(name: string, builtin: string): string {
  return /* wgsl */ `
fn ${name}(a: vec4f, b: vec4f) -> vec4f {
  let infinity = vec4u(0x7f800000u);
  let y = select(${builtin}(a, b), b, (bitcast<vec4u>(b) & vec4u(0x7fffffffu)) > infinity);
  return select(y, a, (bitcast<vec4u>(a) & vec4u(0x7fffffffu)) > infinity);
}
`;
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
