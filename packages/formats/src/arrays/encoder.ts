import type { CodeArray, EncodeOptions, FloatFormat, Rounding } from "../format.js";

/** What encoding the bits of float32 needs to know of a format, a rounding and saturation. */
export interface Encoder {
  readonly format: FloatFormat;
  readonly rounding: Rounding;
  readonly saturate: boolean;
  /** Bits that a float32's mantissa has more. */
  readonly shift: number;
  /** How far a float32's sign lies above the format's. */
  readonly signShift: number;
  readonly signBit: number;
  /** A float32's exponent field at the format's smallest normal number. */
  readonly smallestField: number;
  readonly largest: number;
  /** Codes of positive and negative overflow, and of the infinities. */
  readonly overflow: readonly [number, number];
  readonly infinity: readonly [number, number];
  /** The code of a NaN, or undefined where there is none and none is asked for. */
  readonly nan: number | undefined;
  /** Bits of a float32 NaN's upper part that are kept in the code. */
  readonly nanMask: number;
  readonly nanKeepsSign: boolean;
  readonly dropsZeroSign: boolean;
}

const encoders = /* @__PURE__ */ new WeakMap<FloatFormat, Map<string, Encoder>>();

/**
 * The encoder, made at first use. Its special codes are asked of `format.encode`, so that arrays and numbers cannot differ.
 * @throws TypeError if the rounding is unknown.
 */
export function encoderOf(format: FloatFormat, rounding: Rounding, saturate: boolean): Encoder {
  let known = encoders.get(format);
  if (!known) {
    known = new Map();
    encoders.set(format, known);
  }
  const key = saturate ? `${rounding} saturated` : rounding;
  let encoder = known.get(key);
  if (!encoder) {
    encoder = makeEncoder(format, rounding, saturate);
    known.set(key, encoder);
  }
  return encoder;
}

function makeEncoder(format: FloatFormat, rounding: Rounding, saturate: boolean): Encoder {
  const { bits, mantissaBits, bias, nanEncoding } = format;
  const options: EncodeOptions =
    rounding === "stochastic" ? { rounding, saturate, bits: 0 } : { rounding, saturate };
  const both = (magnitude: number): readonly [number, number] => [
    format.encode(magnitude, options),
    format.encode(-magnitude, options),
  ];
  const hasNaN = nanEncoding !== "none";
  return {
    format,
    rounding,
    saturate,
    shift: 23 - mantissaBits,
    signShift: 32 - bits,
    signBit: 2 ** (bits - 1),
    smallestField: 128 - bias,
    largest: format.encode(format.finfo.max),
    overflow: both(Number.MAX_VALUE),
    infinity: both(Infinity),
    nan: hasNaN || saturate ? format.encode(Number.NaN, options) : undefined,
    nanMask: format.nanPayload === "truncated" ? 2 ** (mantissaBits - 1) - 1 : 0,
    nanKeepsSign: nanEncoding === "ieee" || nanEncoding === "allOnes",
    dropsZeroSign: nanEncoding === "negativeZero",
  };
}

/**
 * Writes the codes of the float32 in `words` from `out[at]` on. `random` holds one word for each, which only stochastic
 * rounding reads.
 */
export function encodeWords(
  words: Uint32Array,
  count: number,
  encoder: Encoder,
  out: CodeArray,
  at: number,
  random: Uint32Array,
): void {
  if (encoder.rounding === "nearestEven" && encoder.shift > 0) {
    encodeNearestEven(words, count, encoder, out, at);
  } else {
    for (let i = 0; i < count; i++) {
      out[at + i] = encodeWord(words[i] as number, encoder, random[i] as number);
    }
  }
}

/**
 * Normal results need one addition: half a unit less one, plus the bit that will be last, so that ties carry only into odd
 * codes. What overflows comes out above the code of overflow, which follows that of the largest number or is that.
 */
function encodeNearestEven(
  words: Uint32Array,
  count: number,
  encoder: Encoder,
  out: CodeArray,
  at: number,
): void {
  const { shift, signShift, signBit, smallestField, dropsZeroSign } = encoder;
  const cap = encoder.overflow[0];
  // Float32's subnormals lie where those of formats with its exponents do, so there the integer layouts agree everywhere.
  const smallestNormal = smallestField === 1 ? 0 : smallestField << 23;
  const normalOffset = (1 << (shift - 1)) - 1 - ((smallestField - 1) << 23);
  const subnormalShift = shift + smallestField;
  for (let i = 0; i < count; i++) {
    const word = words[i] as number;
    const magnitude = word & 0x7fffffff;
    let code: number;
    if (magnitude >= smallestNormal) {
      if (magnitude > 0x7f800000) {
        out[at + i] = nanCode(word, encoder);
        continue;
      }
      code = (magnitude + normalOffset + ((magnitude >>> shift) & 1)) >>> shift;
      if (code > cap) code = cap;
    } else {
      // Beyond 25 places every significand rounds to 0.
      const places = Math.min(subnormalShift - (magnitude >>> 23), 25);
      const significand = (magnitude & 0x7fffff) | 0x800000;
      code = (significand + (1 << (places - 1)) - 1 + ((significand >>> places) & 1)) >>> places;
    }
    const sign = dropsZeroSign && code === 0 ? 0 : (word >>> signShift) & signBit;
    out[at + i] = sign | code;
  }
}

/** Any rounding: of the magnitude as `whole` units, `rest` of which 2^places make a unit. */
function encodeWord(word: number, encoder: Encoder, random: number): number {
  const { shift, signShift, signBit, smallestField } = encoder;
  const magnitude = word & 0x7fffffff;
  if (magnitude > 0x7f800000) return nanCode(word, encoder);
  const isNegative = word >>> 31;
  if (magnitude === 0x7f800000) return encoder.infinity[isNegative] as number;
  const field = Math.max(magnitude >>> 23, 1);
  const significand = magnitude < 0x800000 ? magnitude : (magnitude & 0x7fffff) | 0x800000;
  const places = shift + Math.max(smallestField - field, 0);
  // Places beyond 31 wrap; a significand has 24.
  const whole = places > 24 ? 0 : significand >>> places;
  const rest = places > 24 ? significand : significand & ((1 << places) - 1);
  const up = roundsUp(encoder.rounding, isNegative, whole, rest, places, random) ? 1 : 0;
  const code = Math.max(field - smallestField, 0) * 2 ** (23 - shift) + whole + up;
  if (code > encoder.largest) return encoder.overflow[isNegative] as number;
  return encoder.dropsZeroSign && code === 0 ? 0 : (((word >>> signShift) & signBit) | code) >>> 0;
}

function roundsUp(
  rounding: Rounding,
  isNegative: number,
  whole: number,
  rest: number,
  places: number,
  random: number,
): boolean {
  const half = 2 ** (places - 1);
  switch (rounding) {
    case "nearestEven":
      return rest > half || (rest === half && whole % 2 === 1);
    case "nearestAway":
      return rest >= half;
    case "odd":
      return rest > 0 && whole % 2 === 0;
    case "up":
      return rest > 0 && isNegative === 0;
    case "down":
      return rest > 0 && isNegative === 1;
    case "stochastic":
      // As `stochasticThreshold` has it: beyond 32 places the rest is compared in units of the random word.
      return places > 32
        ? (places > 56 ? 0 : rest >>> (places - 32)) > ~random >>> 0
        : rest + (random % 2 ** places) >= 2 ** places;
    case "towardZero":
      return false;
  }
}

function nanCode(word: number, encoder: Encoder): number {
  const { nan, shift, signShift, signBit, nanMask } = encoder;
  // Without a code for NaN, `encode` throws the error that says so.
  if (nan === undefined) return encoder.format.encode(Number.NaN);
  const sign = encoder.nanKeepsSign ? (word >>> signShift) & signBit : 0;
  return (sign | nan | ((word >>> shift) & nanMask)) >>> 0;
}
