import type { Expression } from "../elementwise.js";
import { binary, comparison, numbers, orderedComparison, unary } from "./builders.js";

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

const scalarComparison = (
  name: string,
  operator: string,
  holds: (x: number, c: number) => boolean,
): Expression => ({
  name,
  arity: 1,
  scalars: 1,
  wgsl: ([x], [c]) => `${name}_ordered(${x}, vec4f(${c}))`,
  evaluate: numbers(1, (x, c) => (holds(x as number, c as number) ? 1 : 0)),
  functions: orderedComparison(`${name}_ordered`, operator),
});

/** Comparisons with the scalar c. */
export const gtScalar: Expression = scalarComparison("gtScalar", ">", (x, c) => x > c);
export const geScalar: Expression = scalarComparison("geScalar", ">=", (x, c) => x >= c);
export const ltScalar: Expression = scalarComparison("ltScalar", "<", (x, c) => x < c);
export const leScalar: Expression = scalarComparison("leScalar", "<=", (x, c) => x <= c);
export const eqScalar: Expression = scalarComparison("eqScalar", "==", (x, c) => x === c);
export const neScalar: Expression = {
  ...scalarComparison("neScalar", "==", (x, c) => x !== c),
  wgsl: ([x], [c]) => `1.0 - neScalar_ordered(${x}, vec4f(${c}))`,
};

const isSet = (x: string): string => `((bitcast<vec4u>(${x}) & vec4u(0x7fffffffu)) != vec4u(0u))`;

const logical = (
  name: string,
  operator: string,
  of: (a: boolean, b: boolean) => boolean,
): Expression =>
  binary(
    name,
    (a, b) => `select(vec4f(0.0), vec4f(1.0), ${isSet(a)} ${operator} ${isSet(b)})`,
    (a, b) => (of(a !== 0, b !== 0) ? 1 : 0),
  );

/** Logical operations take what is not 0 as true, NaN too, and give 1 or 0. */
export const logicalAnd: Expression = logical("logicalAnd", "&", (a, b) => a && b);
export const logicalOr: Expression = logical("logicalOr", "|", (a, b) => a || b);
export const logicalXor: Expression = logical("logicalXor", "!=", (a, b) => a !== b);
export const logicalNot: Expression = unary(
  "logicalNot",
  (x) => `select(vec4f(1.0), vec4f(0.0), ${isSet(x)})`,
  (x) => (x === 0 ? 1 : 0),
);

const bitTest = (name: string, operator: string, of: (x: number) => boolean): Expression =>
  unary(
    name,
    (x) =>
      `select(vec4f(0.0), vec4f(1.0), (bitcast<vec4u>(${x}) & vec4u(0x7fffffffu)) ${operator} vec4u(0x7f800000u))`,
    (x) => (of(x) ? 1 : 0),
  );

export const isNan: Expression = bitTest("isNan", ">", Number.isNaN);
export const isInf: Expression = bitTest(
  "isInf",
  "==",
  (x) => Math.abs(x) === Number.POSITIVE_INFINITY,
);
export const isFiniteNumber: Expression = bitTest("isFiniteNumber", "<", Number.isFinite);

/** From (x, mask): the scalar c where the mask is not 0, else x. */
export const maskedFill: Expression = {
  name: "maskedFill",
  arity: 2,
  scalars: 1,
  wgsl: ([x, mask], [c]) => `select(${x}, vec4f(${c}), ${isSet(mask as string)})`,
  evaluate: numbers(2, (x, mask, c) => (mask !== 0 ? c : x) as number),
};

/** From (x, mask): x where the mask is not 0, else 0, whatever x is there. */
export const keepWhere: Expression = binary(
  "keepWhere",
  (x, mask) => `select(vec4f(0.0), ${x}, ${isSet(mask)})`,
  (x, mask) => (mask !== 0 ? x : 0),
);
