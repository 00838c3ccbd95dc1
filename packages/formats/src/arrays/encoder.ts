import type { CodeArray, EncodeOptions, FloatFormat, Rounding } from "../format.js";
import { decodeWords } from "./decoder.js";

/** Constants for encoding the bits of float32 with a format, a rounding and saturation. */
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
  /** The float32 that overflow decodes to, as bits. */
  readonly overflowWords: readonly [number, number];
  /** The largest and the smallest positive number, as float32 bits. */
  readonly limitWords: readonly [number, number];
  /** The code of a NaN, or undefined where the format has none. */
  readonly nan: number | undefined;
  /** Bits of a float32 NaN's upper part that are kept in the code. */
  readonly nanMask: number;
  readonly nanKeepsSign: boolean;
  readonly dropsZeroSign: boolean;
}

const encoders = /* @__PURE__ */ new WeakMap<FloatFormat, Map<string, Encoder>>();

/** The encoder of the last call, which most calls repeat. */
let latest: Encoder | undefined;

/**
 * The encoder, made at first use. Its special codes are asked of `format.encode`, so that arrays and numbers cannot differ.
 * @throws TypeError if the rounding is unknown.
 */
export function encoderOf(format: FloatFormat, rounding: Rounding, saturate: boolean): Encoder {
  if (latest?.format === format && latest.rounding === rounding && latest.saturate === saturate) {
    return latest;
  }
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
  latest = encoder;
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
  const overflow = both(Number.MAX_VALUE);
  return {
    format,
    rounding,
    saturate,
    shift: 23 - mantissaBits,
    signShift: 32 - bits,
    signBit: 2 ** (bits - 1),
    smallestField: 128 - bias,
    largest: format.encode(format.finfo.max),
    overflow,
    infinity: both(Infinity),
    overflowWords: [decodeOne(overflow[0], format), decodeOne(overflow[1], format)],
    limitWords: [wordOf(format.finfo.max), wordOf(format.finfo.smallestSubnormal)],
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
export function encodeNearestEven(
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

/**
 * Replaces the float32 in `words` by the float32 that they round to: for nearest even without the way through codes, since the
 * last bits only have to become 0.
 * @param scratch room for `count` codes.
 */
export function roundWords(
  words: Uint32Array,
  count: number,
  encoder: Encoder,
  random: Uint32Array,
  scratch: Uint32Array,
): void {
  if (encoder.rounding === "nearestEven" && encoder.shift > 0) {
    roundNearestEven(words, count, encoder);
  } else {
    encodeWords(words, count, encoder, scratch, 0, random);
    decodeWords(scratch, 0, count, encoder.format, words);
  }
}

/** `roundWords` to nearest even. */
function roundNearestEven(words: Uint32Array, count: number, encoder: Encoder): void {
  const { shift, smallestField, limitWords } = encoder;
  const smallestNormal = smallestField === 1 ? 0 : smallestField << 23;
  const normalRange = limitWords[0] - smallestNormal;
  const halfLess = (1 << (shift - 1)) - 1;
  const mask = -1 << shift;
  for (let i = 0; i < count; i++) {
    const word = words[i] as number;
    words[i] =
      ((word & 0x7fffffff) - smallestNormal) >>> 0 <= normalRange
        ? (word + halfLess + ((word >>> shift) & 1)) & mask
        : roundWord(word, encoder);
  }
}

/** Any float32 to nearest even. */
function roundWord(word: number, encoder: Encoder): number {
  const { format, shift, smallestField, limitWords, overflowWords, dropsZeroSign } = encoder;
  const [largest, smallest] = limitWords;
  const magnitude = word & 0x7fffffff;
  const sign = word & 0x80000000;
  if (magnitude > 0x7f800000) return decodeOne(nanCode(word, encoder), format);
  const isSubnormal = smallestField > 1 && magnitude < smallestField << 23;
  const places = isSubnormal ? shift + smallestField - (magnitude >>> 23) : shift;
  if (places > 24) return dropsZeroSign ? 0 : sign;
  let rounded: number;
  if (places === 24) rounded = (magnitude & 0x7fffff) > 0 ? smallest : 0;
  else {
    // The implied bit is the last one kept where all others go.
    const odd = ((magnitude | 0x800000) >>> places) & 1;
    rounded = (magnitude + (1 << (places - 1)) - 1 + odd) & (-1 << places);
  }
  if (rounded > largest) return overflowWords[word >>> 31] as number;
  return dropsZeroSign && rounded === 0 ? 0 : sign | rounded;
}

function decodeOne(code: number, format: FloatFormat): number {
  const word = new Uint32Array(1);
  decodeWords(Uint32Array.of(code), 0, 1, format, word);
  return word[0] as number;
}

const wordOf = (value: number): number =>
  new Uint32Array(Float32Array.of(value).buffer)[0] as number;

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
