import { type IntegerDType, toInteger } from "@halfstep/formats/dtypes";
import { quadType } from "../domain.js";
import type { Expression } from "../elementwise.js";
import { formula } from "../formula/formula.js";
import { type Condition, constant, select, type Term } from "../formula/term.js";
import { clamped, converted, extremeOf, fromFloatsWgsl, wrapping } from "./integer-forms.js";

/** y = x, for copies and casts between floats. Integers keep every bit. */
export const identity: Expression = formula("identity", (x) => x, { integers: converted("same") });

const sum = {
  wgsl: ([a, b]: readonly string[]) => `${a} + ${b}`,
  evaluate: (a: number, b: number) => a + b,
};
const product = { wgsl: ([a, b]: readonly string[]) => `${a} * ${b}`, evaluate: Math.imul };

/** a + b. Integers are computed modulo 2^32, in all expressions that take them. */
export const add: Expression = formula("add", (a, b) => a.add(b), { integers: wrapping(sum) });
/** a − b. */
export const sub: Expression = formula("sub", (a, b) => a.sub(b), {
  integers: wrapping({ wgsl: ([a, b]) => `${a} - ${b}`, evaluate: (a, b) => a - b }),
});
/** a · b. */
export const mul: Expression = formula("mul", (a, b) => a.mul(b), { integers: wrapping(product) });
/** a / b. */
export const div: Expression = formula("div", (a, b) => a.div(b));

/** −x. */
export const neg: Expression = formula("neg", (x) => x.neg(), {
  integers: wrapping({
    wgsl: ([x], domain) => `${quadType(domain)}() - ${x}`,
    evaluate: (x) => -x,
  }),
});
/** |x|. */
export const abs: Expression = formula("abs", (x) => x.abs(), {
  integers: wrapping({ wgsl: ([x]) => `abs(${x})`, evaluate: Math.abs }),
});
/** x². */
export const square: Expression = formula("square", (x) => x.square(), {
  integers: wrapping({ wgsl: ([x]) => `${x} * ${x}`, evaluate: (x) => Math.imul(x, x) }),
});
/** 1 / x. */
export const reciprocal: Expression = formula("reciprocal", (x) => constant(1).div(x));

/** √x. */
export const sqrt: Expression = formula("sqrt", (x) => x.sqrt());
/** 1 / √x. */
export const rsqrt: Expression = formula("rsqrt", (x) => x.rsqrt());

/** -1, 0 or 1; NaN stays NaN and zeros keep their sign, as in NumPy. */
export const sign: Expression = formula("sign", (x) => x.sign(), {
  integers: wrapping({
    wgsl: ([x], domain) => (domain === "int32" ? `sign(${x})` : `min(${x}, vec4u(1u))`),
    evaluate: Math.sign,
  }),
});

/** x · c */
export const scale: Expression = formula("scale", (x, c) => x.mul(c), {
  scalars: 1,
  integers: wrapping({ ...product, scalars: 1 }),
});

/** x + c */
export const addScalar: Expression = formula("addScalar", (x, c) => x.add(c), {
  scalars: 1,
  integers: wrapping({ ...sum, scalars: 1 }),
});

const firstNan = (a: Term, b: Term, otherwise: Term): Term =>
  select(a.isNan(), a, select(b.isNan(), b, otherwise));

/** The larger operand; NaN if either is, as torch.maximum. */
export const maximum: Expression = formula("maximum", (a, b) => firstNan(a, b, a.max(b)), {
  integers: extremeOf("max"),
});

/** The smaller operand; NaN if either is, as torch.minimum. */
export const minimum: Expression = formula("minimum", (a, b) => firstNan(a, b, a.min(b)), {
  integers: extremeOf("min"),
});

const extremumBackward = (name: string, isPassed: (a: Term, b: Term) => Condition): Expression =>
  formula(name, (g, a, b) => {
    const ordered = select(isPassed(a, b), 0, select(a.eq(b), constant(0.5).mul(g), g));
    return select(a.isNan().or(b.isNan()), g, ordered);
  });

/**
 * The gradient of the operand a of a maximum, of (gradient, a, b): 0 where a < b, half where they are equal, else all of it, so that
 * both operands have it where either is NaN, as in torch. The gradient of b is that of (gradient, b, a).
 */
export const maximumBackward: Expression = extremumBackward("maximumBackward", (a, b) => a.lt(b));

/** The same of a minimum: 0 where a > b. */
export const minimumBackward: Expression = extremumBackward("minimumBackward", (a, b) => a.gt(b));

/** The largest whole number that is not above x. */
export const floor: Expression = formula("floor", (x) => x.floor());
/** The smallest whole number that is not below x. */
export const ceil: Expression = formula("ceil", (x) => x.ceil());

/** The nearest whole number; of two that are equally near, the even one. */
export const round: Expression = formula("round", (x) => x.round());

/** x clamped to the scalars low and high: high everywhere where low is above it. NaN stays NaN. */
export const clamp: Expression = formula(
  "clamp",
  (x, low, high) => {
    const raised = select(x.lt(low), low, x);
    return select(x.isNan(), x, select(raised.gt(high), high, raised));
  },
  { scalars: 2, integers: clamped },
);

/**
 * The gradient of clamp from (gradient, x): passed on where low ≤ x ≤ high, NaN where x is NaN. (torch's is 0 there, which would hide
 * an overflowed activation from a scaler.)
 */
export const clampBackward: Expression = formula(
  "clampBackward",
  (g, x, low, high) => select(x.isNan(), x, select(x.ge(low).and(x.le(high)), g, 0)),
  { scalars: 2 },
);

/** The gradient of hardtanh from (gradient, x): passed on where low < x < high, and where x is NaN, as in torch. */
export const hardtanhBackward: Expression = formula(
  "hardtanhBackward",
  (g, x, low, high) => select(x.gt(low).and(x.lt(high)).or(x.isNan()), g, 0),
  { scalars: 2 },
);

/** x + c · a · b */
export const addcmul: Expression = formula("addcmul", (x, a, b, c) => x.add(c.mul(a).mul(b)), {
  scalars: 1,
});

/** x + c · a / b */
export const addcdiv: Expression = formula("addcdiv", (x, a, b, c) => x.add(c.mul(a).div(b)), {
  scalars: 1,
});

/** The number of an integer, as a float32: exact up to 2^24 in magnitude, beyond that rounded to nearest even. */
export const fromInteger: Expression = formula("fromInteger", (x) => x, {
  integers: converted("float"),
});

// Not a formula, because its result is not a float.
const castToInteger = (name: string, domain: IntegerDType): Expression => ({
  name,
  arity: 1,
  wgsl: ([x]) => `${name}_of(${x})`,
  evaluate: (x) => toInteger(domain, x[0] as number),
  result: domain,
  integers: converted(domain),
  functions: fromFloatsWgsl(`${name}_of`, domain),
});

/** Floats (truncated) and integers as int32: saturated, 0 for NaN. */
export const toInt32: Expression = castToInteger("toInt32", "int32");

/** Floats (truncated) and integers as uint32: saturated, 0 for NaN. */
export const toUint32: Expression = castToInteger("toUint32", "uint32");
