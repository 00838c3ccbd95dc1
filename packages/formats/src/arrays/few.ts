/**
 * Short arrays of float32 with default options, in loops, because calls, views and copies cost more there than conversion does.
 * Each returns undefined where the general path is needed: for other kinds of arrays, for invalid arguments, and for NaNs, whose
 * bits are lost in JavaScript numbers. All elements are read before any is written, so arrays may overlap.
 */
import type { CodeArray, FloatFormat } from "../format.js";
import type { Numbers } from "./arguments.js";
import { decodeWords } from "./decoder.js";
import { encodeNearestEven, encoderOf } from "./encoder.js";
import { workspaceFor } from "./piece.js";

/** Up to this many, a loop is faster than `set`. */
const few = 64;

/** `encodeArray`. */
export function encodeFew<C extends CodeArray>(
  values: Numbers,
  format: FloatFormat<C>,
  given: C | undefined,
): C | undefined {
  if (!isFew(values) || !isNarrow(format)) return undefined;
  const { length } = values;
  if (given && !(holdsCodesOf(given, format) && given.length >= length)) return undefined;
  const { numbers, words } = workspaceFor(0);
  const encoder = encoderOf(format, "nearestEven", false);
  if (!copyFew(values, numbers, length)) return undefined;
  const out = given ?? format.createCodes(length);
  encodeNearestEven(words, length, encoder, out, 0);
  return out;
}

/** `decodeArray`. */
export function decodeFew(
  codes: CodeArray,
  format: FloatFormat,
  given: Float32Array | undefined,
): Float32Array | undefined {
  if (!holdsCodesOf(codes, format)) return undefined;
  const { length } = codes;
  if (!(length > 0 && length <= few)) return undefined;
  if (format.bits !== 8 * codes.BYTES_PER_ELEMENT) return undefined;
  if (given && !(given instanceof Float32Array && given.length >= length)) return undefined;
  const { numbers, words } = workspaceFor(0);
  decodeWords(codes, 0, length, format, words);
  const out = given ?? new Float32Array(length);
  return storeFew(numbers, out, length);
}

/**
 * `roundArray` in float64 arithmetic, which is faster than extracting the bits of each number. For a float32 x, c − (c − x) with c
 * = (2^(52 − mantissaBits) + 1) · x has the format's precision (Veltkamp's splitting; Dekker, "A floating-point technique for
 * extending the available precision", 1971). The product is rounded at the format's last place, with ties to even because 2^(52 −
 * mantissaBits) · x is an even multiple of it. Subnormal numbers are rounded at a magnitude whose last place in float64 equals
 * theirs.
 */
export function roundFew(
  values: Numbers,
  format: FloatFormat,
  given: Float32Array | Float64Array | undefined,
): Float32Array | undefined {
  if (!isFew(values) || !isNarrow(format)) return undefined;
  const { length } = values;
  if (given && !(given instanceof Float32Array && given.length >= length)) return undefined;
  const { max, smallestNormal, smallestSubnormal, eps } = format.finfo;
  const factor = 2 ** 52 * eps + 1;
  const lift = 1.5 * 2 ** 52 * smallestSubnormal;
  // Added to −0 it keeps the sign where the format has −0.
  const zero = format.nanEncoding === "negativeZero" ? 0 : -0;
  const { numbers } = workspaceFor(0);
  for (let i = 0; i < length; i++) {
    const value = values[i] as number;
    const magnitude = Math.abs(value);
    if (magnitude >= smallestNormal && magnitude <= max) {
      const product = factor * value;
      numbers[i] = product - (product - value);
    } else if (magnitude < smallestNormal) {
      const rounded = magnitude + lift - lift;
      numbers[i] = (Object.is(value, -0) || value < 0 ? -rounded : rounded) + zero;
    } else return undefined;
  }
  const out = given ?? new Float32Array(length);
  for (let i = 0; i < length; i++) out[i] = numbers[i] as number;
  return out;
}

const isFew = (values: Numbers): values is Float32Array =>
  values instanceof Float32Array && values.length > 0 && values.length <= few;

const isNarrow = (format: FloatFormat): boolean => format.hasZero && format.mantissaBits < 23;

const holdsCodesOf = (array: CodeArray, { bits }: FloatFormat): boolean =>
  bits > 16
    ? array instanceof Uint32Array
    : bits > 8
      ? array instanceof Uint16Array
      : array instanceof Uint8Array;

/** False if there is a NaN. */
function copyFew(from: Float32Array, to: Float32Array, length: number): boolean {
  let isWhole = true;
  for (let i = 0; i < length; i++) {
    const value = from[i] as number;
    if (Number.isNaN(value)) isWhole = false;
    to[i] = value;
  }
  return isWhole;
}

/** All bits of NaNs included. */
function storeFew(numbers: Float32Array, out: Float32Array, length: number): Float32Array {
  if (!copyFew(numbers, out, length)) out.set(numbers.subarray(0, length));
  return out;
}
