import type { Expression } from "../elementwise.js";
import type { IntegerForms } from "../forms.js";
import { binary, comparison, numbers, orderedComparison, unary } from "./builders.js";
import {
  chosen,
  comparedIntegers,
  comparedWith,
  comparedWithScalar,
  constantMask,
  type Interval,
  isSet,
  maskWhere,
} from "./integer-forms.js";

/** where(mask, a, b): a where the mask is not 0, b elsewhere, of one domain. The operand not chosen may be anything. */
export const where: Expression = {
  name: "where",
  arity: 3,
  wgsl: ([mask, a, b]) =>
    `select(${b}, ${a}, (bitcast<vec4u>(${mask}) & vec4u(0x7fffffffu)) != vec4u(0u))`,
  evaluate: (x) => (x[0] !== 0 ? x[1] : x[2]) as number,
  integers: chosen({
    mask: 0,
    wgsl: ([, a, b], isSet) => `select(${b}, ${a}, ${isSet})`,
    evaluate: (x) => (x[0] !== 0 ? x[1] : x[2]) as number,
  }),
};

/** Comparisons of floats, or of integers, give masks: uint32, 1 or 0. With NaN all are 0, except `ne`. */
export const gt: Expression = comparison("gt", ">", (a, b) => a > b);
/** 1 where a ≥ b, else 0. */
export const ge: Expression = comparison("ge", ">=", (a, b) => a >= b);
/** 1 where a < b, else 0. */
export const lt: Expression = comparison("lt", "<", (a, b) => a < b);
/** 1 where a ≤ b, else 0. */
export const le: Expression = comparison("le", "<=", (a, b) => a <= b);
/** 1 where a = b, else 0. */
export const eq: Expression = comparison("eq", "==", (a, b) => a === b);
/** 1 where a ≠ b or one is NaN, else 0. */
export const ne: Expression = {
  ...binary(
    "ne",
    (a, b) => `1u - ne_equal(${a}, ${b})`,
    (a, b) => (a !== b ? 1 : 0),
  ),
  result: "uint32",
  integers: comparedIntegers("!=", (a, b) => a !== b),
  functions: orderedComparison("ne_equal", "=="),
};

const scalarComparison = (
  name: string,
  operator: string,
  holds: (x: number, c: number) => boolean,
  intervalOf: (c: number) => Interval,
): Expression => ({
  name,
  arity: 1,
  scalars: 1,
  result: "uint32",
  integers: comparedWithScalar(intervalOf, "inside"),
  wgsl: ([x], [c]) => `${name}_ordered(${x}, vec4f(${c}))`,
  evaluate: numbers(1, (x, c) => (holds(x as number, c as number) ? 1 : 0)),
  functions: orderedComparison(`${name}_ordered`, operator),
});

/** Comparisons with the scalar c. */
export const gtScalar: Expression = scalarComparison(
  "gtScalar",
  ">",
  (x, c) => x > c,
  comparedWith.gt,
);
/** 1 where x ≥ c, else 0. */
export const geScalar: Expression = scalarComparison(
  "geScalar",
  ">=",
  (x, c) => x >= c,
  comparedWith.ge,
);
/** 1 where x < c, else 0. */
export const ltScalar: Expression = scalarComparison(
  "ltScalar",
  "<",
  (x, c) => x < c,
  comparedWith.lt,
);
/** 1 where x ≤ c, else 0. */
export const leScalar: Expression = scalarComparison(
  "leScalar",
  "<=",
  (x, c) => x <= c,
  comparedWith.le,
);
/** 1 where x = c, else 0. */
export const eqScalar: Expression = scalarComparison(
  "eqScalar",
  "==",
  (x, c) => x === c,
  comparedWith.eq,
);
/** 1 where x ≠ c or x is NaN, else 0. */
export const neScalar: Expression = {
  ...scalarComparison("neScalar", "==", (x, c) => x !== c, comparedWith.eq),
  integers: comparedWithScalar(comparedWith.eq, "outside"),
  wgsl: ([x], [c]) => `1u - neScalar_ordered(${x}, vec4f(${c}))`,
};

const mask = (expression: Expression, integers: IntegerForms): Expression => ({
  ...expression,
  result: "uint32",
  integers,
});

const logical = (
  name: string,
  operator: string,
  of: (a: boolean, b: boolean) => boolean,
): Expression => {
  const wgsl = (a: string, b: string): string => maskWhere(`${a} ${operator} ${b}`);
  const evaluate = (a: number, b: number): number => (of(a !== 0, b !== 0) ? 1 : 0);
  return mask(
    binary(name, (a, b) => wgsl(isSet(a), isSet(b)), evaluate),
    ([a, b]) => ({
      result: "uint32",
      scalars: [],
      wgsl: ([x, y]) => wgsl(isSet(x as string, a), isSet(y as string, b)),
      evaluate: (x) => evaluate(x[0] as number, x[1] as number),
    }),
  );
};

/** Logical operations take what is not 0 as true, NaN too, and give masks. Their operands may be of any domains. */
export const logicalAnd: Expression = logical("logicalAnd", "&", (a, b) => a && b);
/** 1 where a or b is not 0, else 0; NaN is not 0. */
export const logicalOr: Expression = logical("logicalOr", "|", (a, b) => a || b);
/** 1 where exactly one of a and b is not 0, else 0. */
export const logicalXor: Expression = logical("logicalXor", "!=", (a, b) => a !== b);
/** 1 where x is 0, else 0. */
export const logicalNot: Expression = mask(
  unary(
    "logicalNot",
    (x) => maskWhere(`!${isSet(x)}`),
    (x) => (x === 0 ? 1 : 0),
  ),
  ([domain]) => ({
    result: "uint32",
    scalars: [],
    wgsl: ([x]) => maskWhere(`!${isSet(x as string, domain)}`),
    evaluate: (x) => (x[0] === 0 ? 1 : 0),
  }),
);

const bitTest = (
  name: string,
  operator: string,
  of: (x: number) => boolean,
  ofIntegers: 0 | 1,
): Expression =>
  mask(
    unary(
      name,
      (x) =>
        maskWhere(`(bitcast<vec4u>(${x}) & vec4u(0x7fffffffu)) ${operator} vec4u(0x7f800000u)`),
      (x) => (of(x) ? 1 : 0),
    ),
    constantMask(ofIntegers),
  );

/** Masks of floats that are NaN, infinite, or neither. Integers are finite. */
export const isNan: Expression = bitTest("isNan", ">", Number.isNaN, 0);
/** 1 where x is ∞ or −∞, else 0. */
export const isInf: Expression = bitTest(
  "isInf",
  "==",
  (x) => Math.abs(x) === Number.POSITIVE_INFINITY,
  0,
);
/** 1 where x is neither NaN nor infinite, else 0. */
export const isFiniteNumber: Expression = bitTest("isFiniteNumber", "<", Number.isFinite, 1);

/** From (x, mask): the scalar c where the mask is not 0, else x. */
export const maskedFill: Expression = {
  name: "maskedFill",
  arity: 2,
  scalars: 1,
  wgsl: ([x, mask], [c]) => `select(${x}, vec4f(${c}), ${isSet(mask as string)})`,
  evaluate: numbers(2, (x, mask, c) => (mask !== 0 ? c : x) as number),
  integers: chosen({
    mask: 1,
    otherwise: "scalar",
    wgsl: ([x], isSet, c) => `select(${x}, ${c}, ${isSet})`,
    evaluate: (x, c) => (x[1] !== 0 ? c : x[0]) as number,
  }),
};

/** From (x, mask): x where the mask is not 0, else 0, whatever x is there. */
export const keepWhere: Expression = {
  ...binary(
    "keepWhere",
    (x, mask) => `select(vec4f(0.0), ${x}, ${isSet(mask)})`,
    (x, mask) => (mask !== 0 ? x : 0),
  ),
  integers: chosen({
    mask: 1,
    otherwise: "zero",
    wgsl: ([x], isSet, zero) => `select(${zero}, ${x}, ${isSet})`,
    evaluate: (x) => (x[1] !== 0 ? x[0] : 0) as number,
  }),
};
