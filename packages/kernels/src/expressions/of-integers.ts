import type { IntegerDType } from "@halfstep/formats/dtypes";
import { type Domain, quadType, scalarType } from "../domain.js";
import type { Expression } from "../elementwise.js";
import type { IntegerForms } from "../forms.js";
import { isInteger, wrapped } from "./integer-forms.js";

// Expressions of integers alone.

const ofIntegers = (
  name: string,
  { arity, scalars = 0 }: { readonly arity: number; readonly scalars?: number },
  integers: IntegerForms,
): Expression => ({
  name,
  arity,
  ...(scalars > 0 && { scalars }),
  integers,
  wgsl() {
    throw new TypeError(`${name} computes with integers only`);
  },
  evaluate: () => Number.NaN,
});

/** WGSL of an integer: its quad in its own domain. */
interface Written {
  readonly text: string;
  readonly domain: IntegerDType;
}

/** A function of two integers, whose result counts modulo 2^32. */
interface OfTwo {
  /** The domain of the result. Default: int32 where one of the two is. */
  result?(a: IntegerDType, b: IntegerDType): IntegerDType;
  /** WGSL functions that `wgsl` calls. */
  readonly functions?: string;
  /** The bits of the result, as `vec4u` or in its domain. */
  wgsl(a: Written, b: Written): string;
  /** The exact result, or one that is already modulo 2^32. */
  evaluate(a: number, b: number, domain: IntegerDType): number;
}

/** The function of two operands, or of one and of a scalar of its domain. */
const formsOf =
  (
    { result = signedIfAny, functions, wgsl, evaluate }: OfTwo,
    isWithScalar: boolean,
  ): IntegerForms =>
  (domains) => {
    const [a, b = a] = domains as readonly [Domain, Domain?];
    if (!isInteger(a) || !isInteger(b)) return undefined;
    const domain = result(a, b);
    const type = quadType(b);
    return {
      result: domain,
      scalars: isWithScalar ? [scalarType(b)] : [],
      ...(isWithScalar && { scalarsOf: ([c]: readonly number[]) => [wrapped(b, c as number)] }),
      ...(functions !== undefined && { functions }),
      wgsl([x, y], [c]) {
        const second = isWithScalar ? `${type}(${c})` : (y as string);
        return asDomain(
          wgsl({ text: x as string, domain: a }, { text: second, domain: b }),
          domain,
        );
      },
      evaluate: (x, c) =>
        wrapped(domain, evaluate(x[0] as number, (isWithScalar ? c[0] : x[1]) as number, a)),
    };
  };

const signedIfAny = (a: IntegerDType, b: IntegerDType): IntegerDType =>
  a === "int32" || b === "int32" ? "int32" : "uint32";

const asDomain = (text: string, domain: IntegerDType): string =>
  `bitcast<${quadType(domain)}>(${text})`;

const bitsOf = ({ text, domain }: Written): string =>
  domain === "uint32" ? text : asDomain(text, "uint32");

const ofTwo = (name: string, of: OfTwo): Expression =>
  ofIntegers(name, { arity: 2 }, formsOf(of, false));

const withScalar = (name: string, of: OfTwo): Expression =>
  ofIntegers(`${name}Scalar`, { arity: 1, scalars: 1 }, formsOf(of, true));

const ofBits = (symbol: string, evaluate: (a: number, b: number) => number): OfTwo => ({
  wgsl: (a, b) => `${bitsOf(a)} ${symbol} ${bitsOf(b)}`,
  evaluate,
});

const and = ofBits("&", (a, b) => a & b);
/** a & b, of integers bit by bit. An int32 and a uint32 give an int32. */
export const bitwiseAnd: Expression = ofTwo("bitwiseAnd", and);
/** x & c, of the scalar modulo 2^32. */
export const bitwiseAndScalar: Expression = withScalar("bitwiseAnd", and);

const or = ofBits("|", (a, b) => a | b);
/** a | b, of integers bit by bit. */
export const bitwiseOr: Expression = ofTwo("bitwiseOr", or);
/** x | c, of the scalar modulo 2^32. */
export const bitwiseOrScalar: Expression = withScalar("bitwiseOr", or);

const xor = ofBits("^", (a, b) => a ^ b);
/** a ^ b, of integers bit by bit. */
export const bitwiseXor: Expression = ofTwo("bitwiseXor", xor);
/** x ^ c, of the scalar modulo 2^32. */
export const bitwiseXorScalar: Expression = withScalar("bitwiseXor", xor);

/** ~x: every bit turned. */
export const bitwiseNot: Expression = ofIntegers("bitwiseNot", { arity: 1 }, ([domain]) =>
  isInteger(domain)
    ? {
        result: domain,
        scalars: [],
        wgsl: ([x]) => `~${x}`,
        evaluate: (x) => wrapped(domain, ~(x[0] as number)),
      }
    : undefined,
);

const shift = (
  wgsl: (x: Written, count: string) => string,
  evaluate: (x: number, count: number, domain: IntegerDType) => number,
): OfTwo => ({
  result: (x) => x,
  wgsl: (x, count) => wgsl(x, bitsOf(count)),
  // A count below 0 is one above 31, as in WGSL.
  evaluate: (x, count, domain) => evaluate(x, count >>> 0, domain),
});

const left = shift(
  (x, count) => `select(vec4u(), ${bitsOf(x)} << (${count} & vec4u(31u)), ${count} < vec4u(32u))`,
  (x, count) => (count < 32 ? x << count : 0),
);
/** x · 2^count, in the dtype of x; 0 for a count of 32 and more, or below 0. */
export const bitwiseLeftShift: Expression = ofTwo("bitwiseLeftShift", left);
/** The same, by a scalar. */
export const bitwiseLeftShiftScalar: Expression = withScalar("bitwiseLeftShift", left);

const right = shift(
  (x, count) =>
    x.domain === "int32"
      ? `${x.text} >> min(${count}, vec4u(31u))`
      : `select(vec4u(), ${x.text} >> (${count} & vec4u(31u)), ${count} < vec4u(32u))`,
  (x, count, domain) => {
    if (domain === "int32") return x >> Math.min(count, 31);
    return count < 32 ? x >>> count : 0;
  },
);
/** x / 2^count rounded down, in the dtype of x; 0 or −1 for a count of 32 and more, or below 0. */
export const bitwiseRightShift: Expression = ofTwo("bitwiseRightShift", right);
/** The same, by a scalar. */
export const bitwiseRightShiftScalar: Expression = withScalar("bitwiseRightShift", right);

const sizeOf = (x: Written): string =>
  x.domain === "uint32" ? x.text : `bitcast<vec4u>(abs(${x.text}))`;

const isNegative = ({ text, domain }: Written): string =>
  domain === "uint32" ? "vec4<bool>()" : `(${text} < vec4i())`;

const quotient: OfTwo = {
  // Of sizes, because WGSL divides signed integers towards 0.
  functions: /* wgsl */ `
fn floor_quotient_of(a: vec4u, b: vec4u, is_negative: vec4<bool>) -> vec4u {
  let divisor = max(b, vec4u(1u));
  let whole = a / divisor;
  let size = select(whole, whole + vec4u(1u), is_negative & (whole * divisor != a));
  return select(select(size, vec4u() - size, is_negative), vec4u(), b == vec4u());
}
`,
  wgsl: (a, b) =>
    `floor_quotient_of(${sizeOf(a)}, ${sizeOf(b)}, ${isNegative(a)} != ${isNegative(b)})`,
  evaluate: (a, b) => (b === 0 ? 0 : Math.floor(a / b)),
};
/** a / b rounded down, as in Python; 0 where b is 0. An int32 and a uint32 give an int32. */
export const floorDivide: Expression = ofTwo("floorDivide", quotient);
/** The same, by a scalar. */
export const floorDivideScalar: Expression = withScalar("floorDivide", quotient);

const rest: OfTwo = {
  functions: /* wgsl */ `
fn rest_of(a: vec4u, b: vec4u, is_negative: vec4<bool>, divides_negative: vec4<bool>, bits: vec4u) -> vec4u {
  let rest = a % max(b, vec4u(1u));
  let size = select(rest, b - rest, is_negative & (rest != vec4u()));
  return select(select(size, vec4u() - size, divides_negative), bits, b == vec4u());
}
`,
  wgsl: (a, b) =>
    `rest_of(${sizeOf(a)}, ${sizeOf(b)}, ${isNegative(a)} != ${isNegative(b)}, ${isNegative(b)}, ${bitsOf(a)})`,
  evaluate: (a, b) => (b === 0 ? a : a - b * Math.floor(a / b)),
};
/** a − b · floorDivide(a, b), which has the sign of b, as in Python; a where b is 0. */
export const remainder: Expression = ofTwo("remainder", rest);
/** The same, by a scalar. */
export const remainderScalar: Expression = withScalar("remainder", rest);

/**
 * The place in n dimensions, from (the place in the first n − 1, the index in the last), uint32 both: place · size + index. The scalars
 * are the number of places in the first n − 1 dimensions and the size of the last; where either operand is not below its bound, the
 * result is 2^32 − 1, an invalid place.
 */
export const placeIn: Expression = ofIntegers(
  "placeIn",
  { arity: 2, scalars: 2 },
  ([place, index]) => {
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
);
