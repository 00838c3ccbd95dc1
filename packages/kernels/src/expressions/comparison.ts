import type { Expression } from "../elementwise.js";
import { formula } from "../formula/formula.js";
import { type Condition, predicate, select, type Term } from "../formula/term.js";
import {
  type Compared,
  chosen,
  comparedIntegers,
  comparedWith,
  comparedWithScalar,
  constantMask,
  isSet as isSetWgsl,
  logicalIntegers,
} from "./integer-forms.js";

/** Whether a number is not 0, NaN included. */
const isSet = predicate({ wgsl: isSetWgsl, holds: (x) => x !== 0 });

const isInfinite = predicate({
  wgsl: (x) => `(bitcast<vec4u>(${x}) & vec4u(0x7fffffffu)) == vec4u(0x7f800000u)`,
  holds: (x) => Math.abs(x) === Number.POSITIVE_INFINITY,
});

/**
 * where(mask, a, b): a where the mask is not 0, b elsewhere, of one domain. The other operand may have any value, NaN
 * included.
 */
export const where: Expression = formula("where", (mask, a, b) => select(isSet(mask), a, b), {
  integers: chosen({
    mask: 0,
    wgsl: ([, a, b], isSet) => `select(${b}, ${a}, ${isSet})`,
    evaluate: (x) => (x[0] !== 0 ? x[1] : x[2]) as number,
  }),
});

/** A comparison that is false with NaN. */
const ordered = (a: Term, b: Term, compared: Compared): Condition =>
  a.isNan().or(b.isNan()).not().and(a[compared](b));

const comparison = (name: Compared): Expression =>
  formula(name, (a, b) => ordered(a, b, name), { integers: comparedIntegers(name) });

/** Comparisons of floats, or of integers, give masks: uint32, 1 or 0. With NaN all are 0, except `ne`. */
export const gt: Expression = comparison("gt");
/** 1 where a ≥ b, else 0. */
export const ge: Expression = comparison("ge");
/** 1 where a < b, else 0. */
export const lt: Expression = comparison("lt");
/** 1 where a ≤ b, else 0. */
export const le: Expression = comparison("le");
/** 1 where a = b, else 0. */
export const eq: Expression = comparison("eq");
/** 1 where a ≠ b or one is NaN, else 0. */
export const ne: Expression = formula("ne", (a, b) => ordered(a, b, "eq").not(), {
  integers: comparedIntegers("ne"),
});

const scalarComparison = (name: Compared): Expression =>
  formula(`${name}Scalar`, (x, c) => ordered(x, c, name), {
    scalars: 1,
    integers: comparedWithScalar(comparedWith[name], "inside"),
  });

/** Comparisons with the scalar c. */
export const gtScalar: Expression = scalarComparison("gt");
/** 1 where x ≥ c, else 0. */
export const geScalar: Expression = scalarComparison("ge");
/** 1 where x < c, else 0. */
export const ltScalar: Expression = scalarComparison("lt");
/** 1 where x ≤ c, else 0. */
export const leScalar: Expression = scalarComparison("le");
/** 1 where x = c, else 0. */
export const eqScalar: Expression = scalarComparison("eq");
/** 1 where x ≠ c or x is NaN, else 0. */
export const neScalar: Expression = formula("neScalar", (x, c) => ordered(x, c, "eq").not(), {
  scalars: 1,
  integers: comparedWithScalar(comparedWith.eq, "outside"),
});

/**
 * Logical operations return masks. Numbers other than 0 are true, NaN included. Their operands may have any domains.
 */
export const logicalAnd: Expression = formula("logicalAnd", (a, b) => isSet(a).and(isSet(b)), {
  integers: logicalIntegers("&", (a, b) => a && b),
});
/** 1 where a or b is not 0, else 0; NaN is not 0. */
export const logicalOr: Expression = formula("logicalOr", (a, b) => isSet(a).or(isSet(b)), {
  integers: logicalIntegers("|", (a, b) => a || b),
});
/** 1 where exactly one of a and b is not 0, else 0. */
export const logicalXor: Expression = formula(
  "logicalXor",
  (a, b) =>
    isSet(a)
      .or(isSet(b))
      .and(isSet(a).and(isSet(b)).not()),
  { integers: logicalIntegers("!=", (a, b) => a !== b) },
);
/** 1 where x is 0, else 0. */
export const logicalNot: Expression = formula("logicalNot", (x) => isSet(x).not(), {
  integers: logicalIntegers("!", (x) => !x),
});

/** Masks of floats that are NaN, infinite, or neither. Integers are finite. */
export const isNan: Expression = formula("isNan", (x) => x.isNan(), { integers: constantMask(0) });
/** 1 where x is ∞ or −∞, else 0. */
export const isInf: Expression = formula("isInf", isInfinite, {
  integers: constantMask(0),
});
/** 1 where x is neither NaN nor infinite, else 0. */
export const isFiniteNumber: Expression = formula("isFiniteNumber", (x) => x.isFinite(), {
  integers: constantMask(1),
});

/** From (x, mask): the scalar c where the mask is not 0, else x. */
export const maskedFill: Expression = formula(
  "maskedFill",
  (x, mask, c) => select(isSet(mask), c, x),
  {
    scalars: 1,
    integers: chosen({
      mask: 1,
      otherwise: "scalar",
      wgsl: ([x], isSet, c) => `select(${x}, ${c}, ${isSet})`,
      evaluate: (x, c) => (x[1] !== 0 ? c : x[0]) as number,
    }),
  },
);

/** From (x, mask): x where the mask is not 0, else 0, even where x is NaN. */
export const keepWhere: Expression = formula("keepWhere", (x, mask) => select(isSet(mask), x, 0), {
  integers: chosen({
    mask: 1,
    otherwise: "zero",
    wgsl: ([x], isSet, zero) => `select(${zero}, ${x}, ${isSet})`,
    evaluate: (x) => (x[1] !== 0 ? x[0] : 0) as number,
  }),
});
