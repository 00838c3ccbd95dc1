import { exponentOf, powerOfTwo } from "./exponent.js";

/** Names of the formats that `formatOf` knows. */
export type FormatName = "float16" | "bfloat16";

/**
 * How a real number becomes one of the format's.
 *
 * - `"nearestEven"`: the nearest, ties to the code whose last bit is 0 (IEEE 754 roundTiesToEven);
 * - `"nearestAway"`: the nearest, ties away from zero;
 * - `"towardZero"`, `"down"` (toward −∞), `"up"` (toward +∞);
 * - `"odd"`: exact numbers stay, all others take the neighbour whose last bit is 1, so that a later rounding to a narrower
 *   format errs only once.
 */
export type Rounding = "nearestEven" | "nearestAway" | "towardZero" | "down" | "up" | "odd";

export interface EncodeOptions {
  /** Default `"nearestEven"`. */
  readonly rounding?: Rounding;
  /** True turns overflow, and ±Infinity too, into the largest finite number of that sign. Default false. */
  readonly saturate?: boolean;
}

/** A format's layout, from the most significant bit: sign, exponent, mantissa. */
export interface FormatDefinition {
  readonly name: FormatName;
  readonly bits: number;
  readonly exponentBits: number;
  /** Stored bits of the significand; normal numbers have one more, which is implied. */
  readonly mantissaBits: number;
  /** What is subtracted from the exponent field of a normal number. */
  readonly bias: number;
  readonly hasInfinity: boolean;
  /** `"ieee"`: an exponent field of ones means infinity where the mantissa is 0, and NaN elsewhere. */
  readonly nanEncoding: "ieee";
  /**
   * What a float32 NaN becomes in bulk encoding, sign kept: `"canonical"` the quiet NaN without payload, `"truncated"` the
   * upper bits of its payload with the quiet bit set.
   */
  readonly nanPayload: "canonical" | "truncated";
}

/** Limits of a format, named as in numpy and torch. */
export interface FormatInfo {
  readonly bits: number;
  /** Distance from 1 to the next larger number. */
  readonly eps: number;
  readonly max: number;
  readonly min: number;
  readonly smallestNormal: number;
  /** The same number as `smallestNormal`, by its older name. */
  readonly tiny: number;
  readonly smallestSubnormal: number;
  /** Decimal digits that always survive: ⌊mantissaBits · log₁₀ 2⌋. */
  readonly decimalDigits: number;
  /** 10 to the power of −decimalDigits. */
  readonly resolution: number;
}

/** A number format: its definition as data, and conversions that take no `this`. */
export interface FloatFormat extends FormatDefinition {
  readonly finfo: FormatInfo;
  /**
   * The number that a code stands for, exactly.
   * @throws RangeError if `code` is not an integer from 0 to 2^bits − 1.
   */
  decode(code: number): number;
  /**
   * The code of a number, rounded once from float64. NaN becomes the positive quiet NaN, because JavaScript shows neither a
   * NaN's sign nor its payload.
   * @throws TypeError if `value` is not a number or the rounding is unknown.
   */
  encode(value: number, options?: EncodeOptions): number;
  /** `decode(encode(value, options))`: the format's number next to `value`. */
  round(value: number, options?: EncodeOptions): number;
}

/**
 * The conversions of a format from its definition.
 *
 * Every finite magnitude is n · 2^(e − mantissaBits) with e = max(⌊log₂ magnitude⌋, 1 − bias), and its code is
 * n + (e − (1 − bias)) · 2^mantissaBits, for subnormal and normal numbers alike; a round-up to the next power of two carries
 * into the exponent field by itself.
 */
export function defineFormat(definition: FormatDefinition): FloatFormat {
  const { name, bits, exponentBits, mantissaBits, bias } = definition;
  const signBit = 2 ** (bits - 1);
  const implied = 2 ** mantissaBits;
  const smallestExponent = 1 - bias;
  const infinity = (2 ** exponentBits - 1) * implied;
  const quietNaN = infinity + implied / 2;

  const decode = (code: number): number => {
    if (!(Number.isInteger(code) && code >= 0 && code < 2 * signBit)) {
      throw new RangeError(
        `${String(code)} is no ${name} code: pass an integer from 0 to ${2 * signBit - 1}`,
      );
    }
    const sign = code < signBit ? 1 : -1;
    const magnitude = code % signBit;
    if (magnitude >= infinity) return magnitude > infinity ? Number.NaN : sign * Infinity;
    const field = Math.floor(magnitude / implied);
    const significand = (magnitude % implied) + (field > 0 ? implied : 0);
    return sign * significand * powerOfTwo(Math.max(field, 1) - bias - mantissaBits);
  };

  const encode = (value: number, options?: EncodeOptions): number => {
    if (typeof value !== "number") {
      throw new TypeError(`${name} encodes numbers, not ${typeof value}: convert it with Number()`);
    }
    if (Number.isNaN(value)) return quietNaN;
    const rounding = options?.rounding ?? "nearestEven";
    const isNegative = value < 0 || Object.is(value, -0);
    const sign = isNegative ? signBit : 0;
    const overflow =
      options?.saturate || !overflowsToInfinity(rounding, isNegative) ? infinity - 1 : infinity;
    const magnitude = Math.abs(value);
    if (magnitude === Infinity) return sign + (options?.saturate ? overflow : infinity);
    const exponent = Math.max(exponentOf(magnitude), smallestExponent);
    // Scaling by a power of two loses nothing: the quotient is at least as large as the magnitude or at least 2^mantissaBits.
    const quotient = magnitude * powerOfTwo(mantissaBits - exponent);
    const whole = Math.floor(quotient);
    const up = roundsUp(rounding, isNegative, whole, quotient - whole) ? 1 : 0;
    const code = (exponent - smallestExponent) * implied + whole + up;
    return sign + (code < infinity ? code : overflow);
  };

  const decimalDigits = Math.floor(mantissaBits * Math.log10(2));
  const smallestNormal = 2 ** smallestExponent;
  const max = decode(infinity - 1);
  return {
    ...definition,
    finfo: {
      bits,
      eps: 2 ** -mantissaBits,
      max,
      min: -max,
      smallestNormal,
      tiny: smallestNormal,
      smallestSubnormal: 2 ** (smallestExponent - mantissaBits),
      decimalDigits,
      resolution: Number(`1e-${decimalDigits}`),
    },
    decode,
    encode,
    round: (value, options) => decode(encode(value, options)),
  };
}

function roundsUp(
  rounding: Rounding,
  isNegative: boolean,
  whole: number,
  fraction: number,
): boolean {
  switch (rounding) {
    case "nearestEven":
      return fraction > 0.5 || (fraction === 0.5 && whole % 2 === 1);
    case "nearestAway":
      return fraction >= 0.5;
    case "odd":
      return fraction > 0 && whole % 2 === 0;
    default:
      return fraction > 0 && rounding === (isNegative ? "down" : "up");
  }
}

/** IEEE 754 §7.4: a rounding that cannot leave the finite numbers in this direction stops at the largest. */
function overflowsToInfinity(rounding: Rounding, isNegative: boolean): boolean {
  switch (rounding) {
    case "nearestEven":
    case "nearestAway":
      return true;
    case "down":
      return isNegative;
    case "up":
      return !isNegative;
    case "towardZero":
    case "odd":
      return false;
    default:
      throw new TypeError(
        `unknown rounding "${String(rounding)}": use nearestEven, nearestAway, towardZero, down, up or odd`,
      );
  }
}
