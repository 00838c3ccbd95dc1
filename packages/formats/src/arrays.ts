import type { CodeArray, FloatFormat } from "./format.js";
import type { EncodeOptions } from "./rounding.js";

/**
 * The codes of many numbers, each rounded once, in `out` or a new array.
 *
 * A Float32Array with default options takes a path on its bits, which alone can see NaNs: their signs are kept, and their
 * payloads as the format's `nanPayload` says. Other inputs are read as float64.
 * @throws RangeError if `out` is shorter than `values`.
 */
export function encodeArray<C extends CodeArray>(
  values: ArrayLike<number>,
  format: FloatFormat<C>,
  out: C = format.createCodes(values.length),
  options?: EncodeOptions,
): C {
  checkRoom("encodeArray", values, out);
  if (values instanceof Float32Array && options === undefined && isHalf(format)) {
    encodeFloat32Bits(bitsOf(values), format, out);
  } else {
    for (let i = 0; i < values.length; i++) {
      out[i] = format.encode(values[i] as number, options);
    }
  }
  return out;
}

/**
 * The numbers of many codes, in `out` or a new array. Exact; NaNs keep their sign and payload.
 * @throws RangeError if `out` is shorter than `codes`.
 */
export function decodeArray(
  codes: CodeArray,
  format: FloatFormat,
  out: Float32Array = new Float32Array(codes.length),
): Float32Array {
  checkRoom("decodeArray", codes, out);
  if (!isHalf(format)) {
    for (let i = 0; i < codes.length; i++) out[i] = format.decode(codes[i] as number);
    return out;
  }
  // Bits are moved as integers: a copy through float32 may change NaNs.
  const bits = bitsOf(out);
  const length = codes.length;
  if (format.bits === 16 && format.exponentBits === 8) {
    for (let i = 0; i < length; i++) bits[i] = (codes[i] as number) << 16;
  } else {
    const table = decodeTable(format);
    for (let i = 0; i < length; i++) bits[i] = table[codes[i] as number] as number;
  }
  return out;
}

/**
 * Many numbers, each replaced by the format's number next to it, in `out` (which may be `values`) or a new array.
 * @throws RangeError if `out` is shorter than `values`.
 */
export function roundArray(
  values: ArrayLike<number>,
  format: FloatFormat,
  out: Float32Array = new Float32Array(values.length),
  options?: EncodeOptions,
): Float32Array {
  checkRoom("roundArray", values, out);
  return decodeArray(encodeArray(values, format, undefined, options), format, out);
}

/**
 * Rounds float32 bit patterns to nearest even codes of a 16-bit format. Normal results need one addition: half a unit less
 * one, plus the bit that will be last, so that ties carry only into odd codes.
 */
function encodeFloat32Bits(bits: Uint32Array, format: FloatFormat, out: CodeArray): void {
  const { exponentBits, mantissaBits, bias } = format;
  const shift = 23 - mantissaBits;
  const rebias = (127 - bias) << 23;
  const infinityCode = ((1 << exponentBits) - 1) << mantissaBits;
  // Inputs from the midpoint between the largest finite number and its successor overflow.
  const overflow = (infinityCode << shift) + rebias - (1 << (shift - 1));
  const quietBit = 1 << (mantissaBits - 1);
  const keptPayload = format.nanPayload === "truncated" ? quietBit - 1 : 0;
  // Float32's subnormals lie where bfloat16's do, so there the integer layouts agree everywhere.
  const smallestNormal = bias === 127 ? 0 : (128 - bias) << 23;
  const normalOffset = (1 << (shift - 1)) - 1 - rebias;
  const subnormalShift = shift + 128 - bias;
  const length = bits.length;
  for (let i = 0; i < length; i++) {
    const word = bits[i] as number;
    const sign = (word >>> 16) & 0x8000;
    const magnitude = word & 0x7fffffff;
    let code: number;
    if (magnitude >= overflow) {
      code =
        magnitude > 0x7f800000
          ? infinityCode | quietBit | ((magnitude >>> shift) & keptPayload)
          : infinityCode;
    } else if (magnitude >= smallestNormal) {
      code = (magnitude + normalOffset + ((magnitude >>> shift) & 1)) >>> shift;
    } else {
      // Beyond 25 places every significand rounds to 0.
      const places = Math.min(subnormalShift - (magnitude >>> 23), 25);
      const significand = (magnitude & 0x7fffff) | 0x800000;
      code = (significand + (1 << (places - 1)) - 1 + ((significand >>> places) & 1)) >>> places;
    }
    out[i] = sign | code;
  }
}

const isHalf = (format: FloatFormat): boolean =>
  format.bits === 16 && format.nanEncoding === "ieee";

const tables = /* @__PURE__ */ new WeakMap<FloatFormat, Uint32Array>();

/** Float32 bits of every code of a 16-bit format, made at first use. */
function decodeTable(format: FloatFormat): Uint32Array {
  const known = tables.get(format);
  if (known) return known;
  const numbers = new Float32Array(65536);
  const bits = bitsOf(numbers);
  for (let code = 0; code < 65536; code++) {
    const value = format.decode(code);
    if (Number.isNaN(value)) {
      bits[code] =
        ((code & 0x8000) << 16) | 0x7f800000 | ((code << (23 - format.mantissaBits)) & 0x7fffff);
    } else numbers[code] = value;
  }
  tables.set(format, bits);
  return bits;
}

const bitsOf = (values: Float32Array): Uint32Array =>
  new Uint32Array(values.buffer, values.byteOffset, values.length);

function checkRoom(name: string, values: ArrayLike<number>, out: ArrayLike<number>): void {
  if (out.length < values.length) {
    throw new RangeError(
      `${name}: out holds ${out.length} elements, but there are ${values.length}; pass one at least as long, or none`,
    );
  }
}
