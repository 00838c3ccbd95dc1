import { dtypes, type IntegerDType, toInteger } from "@halfstep/formats/dtypes";
import { type Domain, quadType, scalarType } from "../domain.js";
import type { Form, IntegerForms } from "../forms.js";

export const isInteger = (domain: Domain | undefined): domain is IntegerDType =>
  domain !== undefined && domain !== "float";

/** WGSL over quads of a domain: where they are not 0. For floats it tests bits, so that NaN counts as set. */
export const isSet = (x: string, domain: Domain = "float"): string =>
  domain === "float"
    ? `((bitcast<vec4u>(${x}) & vec4u(0x7fffffffu)) != vec4u(0u))`
    : `(${x} != ${quadType(domain)}())`;

/** WGSL: 1 where a condition over a quad holds, else 0, as a mask. */
const maskWhere = (condition: string): string => `select(vec4u(0u), vec4u(1u), ${condition})`;

/** Comparisons that are false with NaN. */
export type Compared = "gt" | "ge" | "lt" | "le" | "eq";

const comparisons: Readonly<
  Record<
    Compared | "ne",
    { readonly symbol: string; readonly holds: (a: number, b: number) => boolean }
  >
> = {
  gt: { symbol: ">", holds: (a, b) => a > b },
  ge: { symbol: ">=", holds: (a, b) => a >= b },
  lt: { symbol: "<", holds: (a, b) => a < b },
  le: { symbol: "<=", holds: (a, b) => a <= b },
  eq: { symbol: "==", holds: (a, b) => a === b },
  ne: { symbol: "!=", holds: (a, b) => a !== b },
};

/** A comparison of integers. A negative int32 is below every uint32. */
export const comparedIntegers =
  (compared: Compared | "ne"): IntegerForms =>
  (domains) => {
    const { symbol, holds } = comparisons[compared];
    const [a, b] = domains;
    if (!isInteger(a) || !isInteger(b)) return undefined;
    return {
      result: "uint32",
      scalars: [],
      wgsl([x, y]) {
        if (a === b) return maskWhere(`${x} ${symbol} ${y}`);
        const signed = a === "int32" ? x : y;
        const belowZero = a === "int32" ? holds(-1, 0) : holds(0, -1);
        return maskWhere(
          `select(vec4u(${x}) ${symbol} vec4u(${y}), vec4<bool>(${belowZero}), ${signed} < vec4i())`,
        );
      },
      evaluate: (x) => (holds(x[0] as number, x[1] as number) ? 1 : 0),
    };
  };

/** A logical operation on one operand or two of any domains. `of` is its function in JavaScript. */
export const logicalIntegers =
  (symbol: string, of: (a: boolean, b: boolean) => boolean): IntegerForms =>
  (domains) => ({
    result: "uint32",
    scalars: [],
    wgsl(x) {
      const set = domains.map((domain, i) => isSet(x[i] as string, domain));
      return maskWhere(set.length === 1 ? `${symbol}${set[0]}` : set.join(` ${symbol} `));
    },
    evaluate: (x) => (of(x[0] !== 0, x[1] !== 0) ? 1 : 0),
  });

/** The integers from the first to the second number; none where the first is the larger. */
type Interval = readonly [low: number, high: number];

const { NEGATIVE_INFINITY: below, POSITIVE_INFINITY: above } = Number;

/** The integers for which a comparison with c holds; `ne` is the complement of `eq`. */
export const comparedWith: Readonly<Record<Compared, (c: number) => Interval>> = {
  gt: (c) => [Math.floor(c) + 1, above],
  ge: (c) => [Math.ceil(c), above],
  lt: (c) => [below, Math.ceil(c) - 1],
  le: (c) => [below, Math.floor(c)],
  eq: (c) => (Number.isInteger(c) ? [c, c] : [1, 0]),
};

/**
 * A comparison of integers with a scalar c, which may be any number: it tests whether they lie inside (or outside) an interval with
 * ends in the operand's domain.
 */
export const comparedWithScalar =
  (intervalOf: (c: number) => Interval, lies: "inside" | "outside"): IntegerForms =>
  ([domain]) => {
    if (!isInteger(domain)) return undefined;
    const [type, scalar] = [quadType(domain), scalarType(domain)] as ["vec4i", "i32"];
    const [least, most] = dtypes[domain].range;
    const isInside = lies === "inside";
    return {
      result: "uint32",
      scalars: [scalar, scalar],
      scalarsOf([c]) {
        const [low, high] = intervalOf(c as number);
        // NaN gives an empty interval.
        if (!(low <= most && high >= least && low <= high)) return [1, 0];
        return [Math.max(low, least), Math.min(high, most)];
      },
      wgsl: ([x], [low, high]) =>
        `select(vec4u(${isInside ? 0 : 1}u), vec4u(${isInside ? 1 : 0}u), (${x} >= ${type}(${low})) & (${x} <= ${type}(${high})))`,
      evaluate(x, c) {
        const inside = (x[0] as number) >= (c[0] as number) && (x[0] as number) <= (c[1] as number);
        return inside === isInside ? 1 : 0;
      },
    };
  };

/** A mask that is the same for all integers. */
export const constantMask =
  (value: 0 | 1): IntegerForms =>
  () => ({
    result: "uint32",
    scalars: [],
    wgsl: () => `vec4u(${value}u)`,
    evaluate: () => value,
  });

/** Converts the operand to a domain: exactly where possible, else as the host does ({@link toInteger}). */
export const converted =
  (to: Domain | "same"): IntegerForms =>
  ([from]) => {
    if (!isInteger(from)) return undefined;
    const result = to === "same" ? from : to;
    const integer = isInteger(result) ? result : undefined;
    return {
      result,
      scalars: [],
      wgsl: ([x]) => conversion(x as string, from, result),
      evaluate: (x) => (integer ? toInteger(integer, x[0] as number) : (x[0] as number)),
    };
  };

function conversion(x: string, from: IntegerDType, to: Domain): string {
  if (from === to) return x;
  if (to === "int32") return `vec4i(min(${x}, vec4u(0x7fffffffu)))`;
  if (to === "uint32") return `vec4u(max(${x}, vec4i()))`;
  // Both halves convert exactly, so that only their sum rounds: WGSL does not define the rounding of its conversions.
  const low = `vec4f(${x} & ${quadType(from)}(0xffff))`;
  return `vec4f(${x} >> vec4u(16u)) * 65536.0 + ${low}`;
}

/** WGSL `name(x: vec4f)`: floats as integers of a domain, as {@link toInteger} converts them, on every adapter. */
export function fromFloatsWgsl(name: string, domain: IntegerDType): string {
  const type = quadType(domain);
  const [low, inside, end, high] =
    domain === "int32"
      ? ["-2147483648.0", "2147483520.0", "2147483648.0", "0x7fffffffi"]
      : ["0.0", "4294967040.0", "4294967296.0", "0xffffffffu"];
  return /* wgsl */ `
fn ${name}(x: vec4f) -> ${type} {
  let within = ${type}(clamp(x, vec4f(${low}), vec4f(${inside})));
  let saturated = select(within, ${type}(${high}), x >= vec4f(${end}));
  return select(saturated, ${type}(), (bitcast<vec4u>(x) & vec4u(0x7fffffffu)) > vec4u(0x7f800000u));
}
`;
}

/** Selects between values of one domain by a mask of any domain. */
export const chosen =
  (of: {
    /** The index of the mask. The others are values, or the only value besides `otherwise`. */
    readonly mask: number;
    /** The alternative to a single value: the expression's scalar, or 0. */
    readonly otherwise?: "scalar" | "zero";
    wgsl(x: readonly string[], isSet: string, otherwise: string): string;
    evaluate(x: ArrayLike<number>, otherwise: number): number;
  }): IntegerForms =>
  (domains) => {
    const values = domains.filter((_, i) => i !== of.mask);
    const [domain] = values as [Domain, ...Domain[]];
    if (values.some((other) => other !== domain)) return undefined;
    const type = quadType(domain);
    const hasScalar = of.otherwise === "scalar";
    const form: Form = {
      result: domain,
      scalars: hasScalar ? [scalarType(domain)] : [],
      ...(hasScalar &&
        isInteger(domain) && {
          scalarsOf: ([c]: readonly number[]) => [toInteger(domain, c as number)],
        }),
      wgsl: (x, [c]) =>
        of.wgsl(
          x,
          isSet(x[of.mask] as string, domains[of.mask]),
          hasScalar ? `${type}(${c})` : `${type}()`,
        ),
      evaluate: (x, c) => of.evaluate(x, hasScalar ? (c[0] as number) : 0),
    };
    return form;
  };

/** The number modulo 2^32, in the range of a dtype. */
export const wrapped = (dtype: IntegerDType, x: number): number =>
  dtype === "int32" ? x | 0 : x >>> 0;

/**
 * Arithmetic modulo 2^32 of one or two integers, and of the expression's scalars, which are integers. An int32 and a uint32 give an
 * int32, so that a mask counts as 1 and 0. `evaluate` is exact, or already modulo 2^32.
 */
export const wrapping =
  (of: {
    readonly scalars?: number;
    wgsl(x: readonly string[], domain: IntegerDType): string;
    evaluate(a: number, b: number): number;
  }): IntegerForms =>
  (domains) => {
    if (!domains.every(isInteger)) return undefined;
    const result = domains.includes("int32") ? "int32" : "uint32";
    const type = quadType(result);
    const scalars = Array<"i32" | "u32">(of.scalars ?? 0).fill(scalarType(result) as "i32" | "u32");
    return {
      result,
      scalars,
      scalarsOf: (constants) => constants.map((c) => wrapped(result, c)),
      wgsl(x, c) {
        const operands = x.map((v, i) => (domains[i] === result ? v : `bitcast<${type}>(${v})`));
        return of.wgsl([...operands, ...c.map((v) => `${type}(${v})`)], result);
      },
      evaluate: (x, c) =>
        wrapped(result, of.evaluate(x[0] as number, (x.length > 1 ? x[1] : c[0]) as number)),
    };
  };

/** The larger or smaller of two integers of one dtype. */
export const extremeOf =
  (name: "max" | "min"): IntegerForms =>
  ([a, b]) =>
    isInteger(a) && a === b
      ? {
          result: a,
          scalars: [],
          wgsl: ([x, y]) => `${name}(${x}, ${y})`,
          evaluate: (x) => Math[name](x[0] as number, x[1] as number),
        }
      : undefined;

/** Integers within two scalars, which may be any numbers. Where no integer lies between them, the second counts, as for floats. */
export const clamped: IntegerForms = ([domain]) => {
  if (!isInteger(domain)) return undefined;
  const type = quadType(domain);
  const scalar = scalarType(domain) as "i32" | "u32";
  return {
    result: domain,
    scalars: [scalar, scalar],
    scalarsOf: ([low, high]) => [
      toInteger(domain, Math.ceil(low as number)),
      toInteger(domain, Math.floor(high as number)),
    ],
    wgsl: ([x], [low, high]) => `min(max(${x}, ${type}(${low})), ${type}(${high}))`,
    evaluate: (x, c) => Math.min(Math.max(x[0] as number, c[0] as number), c[1] as number),
  };
};
