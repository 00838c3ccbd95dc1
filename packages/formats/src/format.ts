import { exponentOf, powerOfTwo } from "./exponent.js";
import { checkNumber, classifier, formatInfo, neighbours, type RealFormat, ulpOf } from "./real.js";
import {
  type EncodeOptions,
  overflows,
  roundingOf,
  roundsUp,
  stochasticThreshold,
} from "./rounding.js";

export type { EncodeOptions, Rounding } from "./rounding.js";

/** Arrays of codes: 8 bits for formats of up to 8, 16 for up to 16, 32 for wider ones. */
export type CodeArray = Uint8Array | Uint16Array | Uint32Array;

/** The formats with codes, by name. `float64` has none. */
export interface FormatsByName {
  float16: FloatFormat<Uint16Array>;
  bfloat16: FloatFormat<Uint16Array>;
  tfloat32: FloatFormat<Uint32Array>;
  float32: FloatFormat<Uint32Array>;
  float8e4m3fn: FloatFormat<Uint8Array>;
  float8e5m2: FloatFormat<Uint8Array>;
  float8e4m3fnuz: FloatFormat<Uint8Array>;
  float8e5m2fnuz: FloatFormat<Uint8Array>;
  float8e4m3b11fnuz: FloatFormat<Uint8Array>;
  float8e4m3: FloatFormat<Uint8Array>;
  float8e3m4: FloatFormat<Uint8Array>;
  float8e8m0fnu: FloatFormat<Uint8Array>;
  float6e2m3fn: FloatFormat<Uint8Array>;
  float6e3m2fn: FloatFormat<Uint8Array>;
  float4e2m1fn: FloatFormat<Uint8Array>;
}

/** Names of the formats that `formatOf` knows and that have codes. */
export type FormatName = keyof FormatsByName;

/** A format's layout, from the most significant bit: sign (where there is one), exponent, mantissa. */
export interface FormatDefinition {
  readonly name: FormatName;
  readonly bits: number;
  readonly exponentBits: number;
  /** Stored bits of the significand; normal numbers have one more, which is implied. */
  readonly mantissaBits: number;
  /** The number subtracted from the exponent field of a normal number. */
  readonly bias: number;
  readonly isSigned: boolean;
  readonly hasInfinity: boolean;
  /** False in float8e8m0fnu, where the exponent field 0 holds one more normal number instead of zero and the subnormals. */
  readonly hasZero: boolean;
  /**
   * Which codes are NaN.
   * - `"ieee"`: an exponent field of ones means infinity where the mantissa is 0, and NaN elsewhere;
   * - `"allOnes"`: only exponent and mantissa of nothing but ones;
   * - `"negativeZero"`: only the code that would be −0;
   * - `"none"`: no code.
   */
  readonly nanEncoding: "ieee" | "allOnes" | "negativeZero" | "none";
  /**
   * The code of a float32 NaN in bulk encoding, with its sign where the format's NaN has one: `"canonical"` the quiet NaN without
   * payload, `"truncated"` the upper bits of its payload with the quiet bit set.
   */
  readonly nanPayload: "canonical" | "truncated";
}

/** A number format with codes: its definition as data, and conversions that take no `this`. */
export interface FloatFormat<Codes extends CodeArray = CodeArray>
  extends FormatDefinition,
    RealFormat {
  readonly name: FormatName;
  /**
   * The number that a code stands for, exactly.
   * @throws RangeError if `code` is not an integer from 0 to 2^bits − 1.
   */
  decode(code: number): number;
  /**
   * Encodes a number, rounded once from float64.
   *
   * - NaN becomes the positive quiet NaN, because JavaScript shows neither a NaN's sign nor its payload. Formats without NaN
   *   refuse it, or with `saturate` store their maximum, as CUDA's saturating conversions do.
   * - −0 becomes 0 where the format's NaN takes the place of −0.
   * - float8e8m0fnu encodes negative numbers and 0 as NaN (with `saturate`, 0 as its smallest number), as ml_dtypes does.
   *   Positive numbers below its smallest become the smallest in every rounding.
   * @throws TypeError if `value` is not a number, or the rounding is unknown, or its `bits` are missing or superfluous.
   * @throws RangeError if `value` is NaN, the format has none, and `saturate` is not set.
   */
  encode(value: number, options?: EncodeOptions): number;
  /** A new array for codes of this format. */
  createCodes(length: number): Codes;
}

/** @throws TypeError if `format` is not a format with codes, for example a name or `float64`. */
export function checkFormat(operation: string, format: FloatFormat): void {
  const given = format as Partial<FloatFormat> | string | null | undefined;
  if (typeof given === "object" && typeof given?.createCodes === "function") return;
  const described =
    typeof given === "string"
      ? `"${given}"`
      : (given?.name ?? Object.prototype.toString.call(given));
  throw new TypeError(
    `${operation}: ${described} is no format with codes; pass one such as float16, or formatOf(name)`,
  );
}

/**
 * The conversions of a format from its definition.
 *
 * Every finite magnitude is n · 2^(e − mantissaBits) with e = max(⌊log₂ magnitude⌋, 1 − bias). Its code is n + (e − (1 − bias)) ·
 * 2^mantissaBits, for subnormal and normal numbers alike. A round-up to the next power of two carries into the exponent field.
 * Where there is no zero, the smallest exponent is −bias and the first code a normal number's.
 */
export function defineFormat<Codes extends CodeArray>(
  definition: FormatDefinition,
): FloatFormat<Codes> {
  const { name, bits, exponentBits, mantissaBits, bias, isSigned, nanEncoding } = definition;
  const codeCount = 2 ** bits;
  const signBit = isSigned ? codeCount / 2 : codeCount;
  const implied = 2 ** mantissaBits;
  const isIeee = nanEncoding === "ieee";
  const hasSubnormals = definition.hasZero;
  const smallestExponent = hasSubnormals ? 1 - bias : -bias;
  // Magnitudes of finite numbers have the codes below this one, which is what an overflow becomes.
  const endOfFinite = isIeee
    ? (2 ** exponentBits - 1) * implied
    : signBit - (nanEncoding === "allOnes" ? 1 : 0);
  const isNegativeZeroNaN = nanEncoding === "negativeZero";
  const nan = isIeee ? endOfFinite + implied / 2 : endOfFinite;
  const largest = endOfFinite - 1;

  const decode = (code: number): number => {
    if (!(Number.isInteger(code) && code >= 0 && code < codeCount)) {
      throw new RangeError(
        `${String(code)} is no ${name} code: pass an integer from 0 to ${codeCount - 1}`,
      );
    }
    if (isNegativeZeroNaN && code === nan) return Number.NaN;
    const sign = code < signBit ? 1 : -1;
    const magnitude = code & (signBit - 1);
    if (magnitude >= endOfFinite) {
      return isIeee && magnitude === endOfFinite ? sign * Infinity : Number.NaN;
    }
    const field = magnitude >>> mantissaBits;
    const isNormal = field > 0 || !hasSubnormals;
    const significand = (magnitude & (implied - 1)) + (isNormal ? implied : 0);
    return sign * significand * powerOfTwo((isNormal ? field : 1) - bias - mantissaBits);
  };

  const encode = (value: number, options?: EncodeOptions): number => {
    checkNumber(name, value);
    const rounding = roundingOf(options);
    const isNegative = value < 0 || Object.is(value, -0);
    const canOverflow = overflows(rounding, isNegative);
    const saturate = options?.saturate;
    if (Number.isNaN(value)) {
      if (nanEncoding !== "none") return nan;
      if (saturate) return largest;
      throw new RangeError(
        `${name} has no NaN: replace it first, or pass saturate: true for the maximum`,
      );
    }
    const magnitude = Math.abs(value);
    if (!hasSubnormals && !(value > 0)) return saturate && value === 0 ? 0 : nan;
    const sign = isNegative ? signBit : 0;
    let code = Infinity;
    if (magnitude < Infinity) {
      const exponent = Math.max(exponentOf(magnitude), smallestExponent);
      // Scaling by a power of two loses nothing: the quotient is at least as large as the magnitude or at least 2^mantissaBits.
      const quotient = magnitude * powerOfTwo(mantissaBits - exponent);
      const whole = Math.floor(quotient);
      const threshold =
        rounding === "stochastic"
          ? stochasticThreshold(
              options?.bits as number,
              magnitude,
              exponent - mantissaBits,
              mantissaBits,
            )
          : 1;
      const up = roundsUp(rounding, isNegative, whole, quotient - whole, threshold) ? 1 : 0;
      code = (exponent - smallestExponent) * implied + whole + up;
      if (!hasSubnormals) code = Math.max(code - implied, 0);
      if (code < endOfFinite) return code === 0 && isNegativeZeroNaN ? 0 : sign + code;
    }
    const stays = saturate || nanEncoding === "none" || !(canOverflow || code === Infinity);
    return stays ? sign + largest : isNegativeZeroNaN ? nan : sign + endOfFinite;
  };

  const round = (value: number, options?: EncodeOptions): number => decode(encode(value, options));
  const max = decode(largest);
  const finfo = formatInfo(
    bits,
    mantissaBits,
    max,
    isSigned ? -max : decode(0),
    2 ** smallestExponent,
    decode(hasSubnormals ? 1 : 0),
  );
  const ulp = ulpOf({ name, finfo }, mantissaBits);
  const Codes = bits > 16 ? Uint32Array : bits > 8 ? Uint16Array : Uint8Array;
  return {
    ...definition,
    finfo,
    decode,
    encode,
    round,
    ulp,
    ...neighbours({ name, finfo, round, ulp }),
    classify: classifier({ name, finfo, round }),
    createCodes: (length) => new Codes(length) as CodeArray as Codes,
  };
}
