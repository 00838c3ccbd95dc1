import { exponentOf, powerOfTwo } from "./exponent.js";
import type { EncodeOptions } from "./rounding.js";

/** Limits of a format, named as in numpy and torch. */
export interface FormatInfo {
  readonly bits: number;
  /** Distance from 1 to the next larger number. */
  readonly eps: number;
  readonly max: number;
  /** The least finite number: −max, but for float8e8m0fnu, which has no negative numbers. */
  readonly min: number;
  readonly smallestNormal: number;
  /** The same number as `smallestNormal`, by its older name. */
  readonly tiny: number;
  /** The smallest positive number; equal to `smallestNormal` in float8e8m0fnu, which has no subnormals. */
  readonly smallestSubnormal: number;
  /** Decimal digits that always survive: ⌊mantissaBits · log₁₀ 2⌋. */
  readonly decimalDigits: number;
  /** 10 to the power of −decimalDigits. */
  readonly resolution: number;
}

/** The kind of a value after rounding to a format, and its sign. */
export interface Classification {
  readonly kind: "nan" | "infinity" | "normal" | "subnormal" | "zero";
  /** True for −0; false for NaN, whose sign JavaScript does not show. */
  readonly isNegative: boolean;
}

/** A set of numbers to round to. Functions take no `this`; all throw a TypeError if `value` is not a number. */
export interface RealFormat {
  readonly name: string;
  readonly finfo: FormatInfo;
  /** The format's number next to `value`. */
  round(value: number, options?: EncodeOptions): number;
  /**
   * Distance between the format's numbers around |value|: that of its subnormals below the smallest normal number, that at
   * `finfo.max` beyond. NaN for NaN, Infinity for ±Infinity.
   */
  ulp(value: number): number;
  /**
   * The least of the format's numbers that is greater than `value`. Beyond `finfo.max` lies what `round(Infinity)` gives:
   * infinity, NaN where there is none, the maximum itself where there is neither.
   */
  nextUp(value: number): number;
  /** The greatest of the format's numbers that is less than `value`; the mirror image of `nextUp`. */
  nextDown(value: number): number;
  /** The kind of `round(value)`: in float16, 1e-6 is subnormal and 1e6 is infinite. */
  classify(value: number): Classification;
}

/** @throws TypeError if `value` is not a number. */
export function checkNumber(name: string, value: number): void {
  if (typeof value !== "number") {
    throw new TypeError(`${name} takes numbers, not ${typeof value}: convert it with Number()`);
  }
}

export function formatInfo(
  bits: number,
  mantissaBits: number,
  max: number,
  min: number,
  smallestNormal: number,
  smallestSubnormal: number,
): FormatInfo {
  const decimalDigits = Math.floor(mantissaBits * Math.log10(2));
  return {
    bits,
    eps: 2 ** -mantissaBits,
    max,
    min,
    smallestNormal,
    tiny: smallestNormal,
    smallestSubnormal,
    decimalDigits,
    resolution: Number(`1e-${decimalDigits}`),
  };
}

/** `ulp`, for a format whose powers of two run from `smallestNormal` to below `max`. */
export function ulpOf(
  { name, finfo }: Pick<RealFormat, "name" | "finfo">,
  mantissaBits: number,
): RealFormat["ulp"] {
  const lowest = exponentOf(finfo.smallestNormal);
  const highest = exponentOf(finfo.max);
  return (value) => {
    checkNumber(name, value);
    const magnitude = Math.abs(value);
    if (!(magnitude < Infinity)) return magnitude;
    const exponent = Math.min(Math.max(exponentOf(magnitude), lowest), highest);
    return powerOfTwo(exponent - mantissaBits);
  };
}

/** `nextUp` and `nextDown`, for a format that float64 has at least one bit more than. */
export function neighbours({
  name,
  finfo,
  round,
  ulp,
}: Omit<RealFormat, "classify" | "nextUp" | "nextDown">): Pick<RealFormat, "nextUp" | "nextDown"> {
  const next = (value: number, rounding: "up" | "down"): number => {
    checkNumber(name, value);
    if (Number.isNaN(value)) return value;
    const sign = rounding === "up" ? 1 : -1;
    const [first, last] = sign > 0 ? [finfo.min, finfo.max] : [finfo.max, finfo.min];
    if (sign * value < sign * first) return first;
    if (sign * value >= sign * last) return round(sign * Infinity);
    const rounded = round(value, { rounding });
    // Half a unit off a number lies a number or the middle between two: either way this finds the neighbour.
    return rounded === value ? round(value + (sign * ulp(value)) / 2, { rounding }) : rounded;
  };
  return { nextUp: (value) => next(value, "up"), nextDown: (value) => next(value, "down") };
}

/** `classify`, from `round`. */
export function classifier({
  name,
  finfo,
  round,
}: Pick<RealFormat, "name" | "finfo" | "round">): RealFormat["classify"] {
  return (value) => {
    checkNumber(name, value);
    // A format without NaN has no answer to round(NaN).
    const rounded = Number.isNaN(value) ? value : round(value);
    const magnitude = Math.abs(rounded);
    const kind = Number.isNaN(rounded)
      ? "nan"
      : magnitude === Infinity
        ? "infinity"
        : magnitude >= finfo.smallestNormal
          ? "normal"
          : magnitude > 0
            ? "subnormal"
            : "zero";
    return { kind, isNegative: rounded < 0 || Object.is(rounded, -0) };
  };
}
