import { type IntegerDomain, toIntegerOf } from "../domain.js";
import type { Expression } from "../elementwise.js";
import { arithmetic, binary, isNanWgsl, numbers, pickNan, unary, withScalar } from "./builders.js";
import { converted, fromFloatsWgsl } from "./integer-forms.js";

/** y = x: what a copy computes, and a cast between floats. Integers keep every bit. */
export const identity: Expression = {
  ...unary(
    "identity",
    (x) => x,
    (x) => x,
  ),
  integers: converted("same"),
};

/** a + b. */
export const add: Expression = arithmetic(
  binary(
    "add",
    (a, b) => `${a} + ${b}`,
    (a, b) => a + b,
  ),
);
/** a − b. */
export const sub: Expression = arithmetic(
  binary(
    "sub",
    (a, b) => `${a} - ${b}`,
    (a, b) => a - b,
  ),
);
/** a · b. */
export const mul: Expression = arithmetic(
  binary(
    "mul",
    (a, b) => `${a} * ${b}`,
    (a, b) => a * b,
  ),
);
/** a / b. */
export const div: Expression = binary(
  "div",
  (a, b) => `${a} / ${b}`,
  (a, b) => a / b,
);

/** −x. */
export const neg: Expression = arithmetic(
  unary(
    "neg",
    (x) => `-${x}`,
    (x) => -x,
  ),
);
/** |x|. */
export const abs: Expression = unary("abs", (x) => `abs(${x})`, Math.abs);
/** x². */
export const square: Expression = arithmetic(
  unary(
    "square",
    (x) => `${x} * ${x}`,
    (x) => x * x,
  ),
);
/** 1 / x. */
export const reciprocal: Expression = unary(
  "reciprocal",
  (x) => `1.0 / ${x}`,
  (x) => 1 / x,
);

/** √x. */
export const sqrt: Expression = unary("sqrt", (x) => `sqrt(${x})`, Math.sqrt);
/** 1 / √x. */
export const rsqrt: Expression = unary(
  "rsqrt",
  (x) => `inverseSqrt(${x})`,
  (x) => 1 / Math.sqrt(x),
);

/** -1, 0 or 1; NaN stays NaN and zeros keep their sign, as in NumPy. */
export const sign: Expression = unary(
  "sign",
  (x) => `select(select(${x}, vec4f(-1.0), ${x} < vec4f(0.0)), vec4f(1.0), ${x} > vec4f(0.0))`,
  (x) => (x > 0 ? 1 : x < 0 ? -1 : x),
);

/** x · c */
export const scale: Expression = arithmetic(
  withScalar(
    "scale",
    (x, c) => `${x} * ${c}`,
    (x, c) => x * c,
  ),
);

/** x + c */
export const addScalar: Expression = withScalar(
  "addScalar",
  (x, c) => `${x} + ${c}`,
  (x, c) => x + c,
);

/** The larger operand; NaN if either is, as torch.maximum. */
export const maximum: Expression = {
  ...binary(
    "maximum",
    (a, b) => `maximum_of(${a}, ${b})`,
    (a, b) => Math.max(a, b),
  ),
  functions: pickNan("maximum_of", "max"),
};

/** The smaller operand; NaN if either is, as torch.minimum. */
export const minimum: Expression = {
  ...binary(
    "minimum",
    (a, b) => `minimum_of(${a}, ${b})`,
    (a, b) => Math.min(a, b),
  ),
  functions: pickNan("minimum_of", "min"),
};

/**
 * The gradient of the operand a of a maximum, of (gradient, a, b): 0 where a < b, half where they are equal, else all of it, so that
 * both operands have it where either is NaN, as in torch. The gradient of b is that of (gradient, b, a).
 */
export const maximumBackward: Expression = extremumBackward(
  "maximumBackward",
  "<",
  (a, b) => a < b,
);

/** The same of a minimum: 0 where a > b. */
export const minimumBackward: Expression = extremumBackward(
  "minimumBackward",
  ">",
  (a, b) => a > b,
);

function extremumBackward(
  name: string,
  operator: "<" | ">",
  isPassed: (a: number, b: number) => boolean,
): Expression {
  return {
    name,
    arity: 3,
    wgsl: ([g, a, b]) => `${name}_value(${g}, ${a}, ${b})`,
    evaluate: numbers(3, (g, a, b) => (isPassed(a, b) ? 0 : a === b ? 0.5 * g : g)),
    functions: /* wgsl */ `
fn ${name}_value(g: vec4f, a: vec4f, b: vec4f) -> vec4f {
  let ordered = select(select(g, 0.5 * g, a == b), vec4f(0.0), a ${operator} b);
  return select(ordered, g, ${isNanWgsl("a")} | ${isNanWgsl("b")});
}
`,
  };
}

/** The largest whole number that is not above x. */
export const floor: Expression = unary("floor", (x) => `floor(${x})`, Math.floor);
/** The smallest whole number that is not below x. */
export const ceil: Expression = unary("ceil", (x) => `ceil(${x})`, Math.ceil);

/** The nearest whole number; of two that are equally near, the even one. */
export const round: Expression = unary(
  "round",
  (x) => `round(${x})`,
  (x) => {
    const low = Math.floor(x);
    const part = x - low;
    if (part === 0.5) return low % 2 === 0 ? low : low + 1;
    return part < 0.5 ? low : low + 1;
  },
);

/** x where it lies between the scalars low and high, else the one that it passes; NaN stays NaN. */
export const clamp: Expression = {
  name: "clamp",
  arity: 1,
  scalars: 2,
  wgsl: ([x], [low, high]) =>
    `select(select(select(${x}, vec4f(${low}), ${x} < vec4f(${low})), vec4f(${high}), ${x} > vec4f(${high})), ${x}, ${isNanWgsl(x as string)})`,
  evaluate: numbers(1, (x, low, high) => (x > high ? high : x < low ? low : x)),
};

/**
 * The gradient of clamp from (gradient, x): passed on where low ≤ x ≤ high, NaN where x is NaN. (torch's is 0 there, which would
 * hide from a scaler that an activation was lost.)
 */
export const clampBackward: Expression = {
  name: "clampBackward",
  arity: 2,
  scalars: 2,
  wgsl: ([g, x], [low, high]) =>
    `select(select(vec4f(0.0), ${g}, (${x} >= vec4f(${low})) & (${x} <= vec4f(${high}))), ${x}, ${isNanWgsl(x as string)})`,
  evaluate: numbers(2, (g, x, low, high) => (x < low || x > high ? 0 : x >= low ? g : x)),
};

/** The gradient of hardtanh from (gradient, x): passed on where low < x < high, and where x is NaN, as in torch. */
export const hardtanhBackward: Expression = {
  ...clampBackward,
  name: "hardtanhBackward",
  wgsl: ([g, x], [low, high]) =>
    `select(vec4f(0.0), ${g}, ((${x} > vec4f(${low})) & (${x} < vec4f(${high}))) | ${isNanWgsl(x as string)})`,
  evaluate: numbers(2, (g, x, low, high) => (x <= low || x >= high ? 0 : g)),
};

/** x + c · a · b */
export const addcmul: Expression = {
  name: "addcmul",
  arity: 3,
  scalars: 1,
  wgsl: ([x, a, b], [c]) => `${x} + ${c} * ${a} * ${b}`,
  evaluate: numbers(3, (x, a, b, c) => x + c * a * b),
};

/** x + c · a / b */
export const addcdiv: Expression = {
  name: "addcdiv",
  arity: 3,
  scalars: 1,
  wgsl: ([x, a, b], [c]) => `${x} + ${c} * ${a} / ${b}`,
  evaluate: numbers(3, (x, a, b, c) => x + (c * a) / b),
};

/** The number of an integer, as a float32: exact up to 2^24 in magnitude, beyond that rounded to nearest even. */
export const fromInteger: Expression = {
  ...unary(
    "fromInteger",
    (x) => x,
    (x) => x,
  ),
  integers: converted("float"),
};

const toInteger = (name: string, domain: IntegerDomain): Expression => ({
  ...unary(
    name,
    (x) => `${name}_of(${x})`,
    (x) => toIntegerOf(domain, x),
  ),
  result: domain,
  integers: converted(domain),
  functions: fromFloatsWgsl(`${name}_of`, domain),
});

/** Floats without their fraction, and integers, as int32: the end of its range for what lies beyond, 0 for NaN. */
export const toInt32: Expression = toInteger("toInt32", "int32");

/** The same as uint32. */
export const toUint32: Expression = toInteger("toUint32", "uint32");

/**
 * The place in n dimensions, from (the place in the first n − 1, the index in the last), uint32 both: place · size + index. The scalars
 * are the number of places in the first n − 1 dimensions and the size of the last; where either operand is not below its own, it is
 * 2^32 − 1, which is a place nowhere.
 */
export const placeIn: Expression = {
  name: "placeIn",
  arity: 2,
  scalars: 2,
  wgsl() {
    throw new TypeError("placeIn takes two operands of uint32");
  },
  evaluate: () => Number.NaN,
  integers([place, index]) {
    if (place !== "uint32" || index !== "uint32") return undefined;
    const nowhere = 2 ** 32 - 1;
    return {
      result: "uint32",
      scalars: ["u32", "u32"],
      wgsl: ([p, i], [places, size]) =>
        `select(${p} * ${size} + ${i}, vec4u(${nowhere}u), (${p} >= vec4u(${places})) | (${i} >= vec4u(${size})))`,
      evaluate(x, c) {
        const [place, index] = [x[0], x[1]] as [number, number];
        const [places, size] = [c[0], c[1]] as [number, number];
        return place >= places || index >= size ? nowhere : place * size + index;
      },
    };
  },
};
