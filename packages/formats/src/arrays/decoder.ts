import type { CodeArray, FloatFormat } from "../format.js";

/**
 * Writes the float32 bits of `count` codes from `codes[from]` on into `words`. NaNs of IEEE-like formats
 * keep sign and payload; where a format has one NaN only, it becomes the quiet NaN, of its sign where it has one.
 */
export function decodeWords(
  codes: CodeArray,
  from: number,
  count: number,
  format: FloatFormat,
  words: Uint32Array,
): void {
  const { bits, exponentBits, mantissaBits } = format;
  if (bits <= 8) {
    const table = decodeTable(format);
    for (let i = 0; i < count; i++) words[i] = table[codes[from + i] as number] as number;
  } else if (exponentBits === 8) {
    // Such formats are the upper part of a float32.
    const shift = 23 - mantissaBits;
    for (let i = 0; i < count; i++) words[i] = (codes[from + i] as number) << shift;
  } else {
    for (let i = 0; i < count; i++) words[i] = float16Word(codes[from + i] as number);
  }
}

/** @throws RangeError if one of `count` elements from `codes[from]` on is no code of the format. */
export function checkCodes(
  codes: CodeArray,
  from: number,
  count: number,
  format: FloatFormat,
): void {
  if (format.bits === 8 * codes.BYTES_PER_ELEMENT) return;
  let seen = 0;
  for (let i = 0; i < count; i++) seen |= codes[from + i] as number;
  if (seen >>> format.bits === 0) return;
  // The first that is out of range throws.
  for (let i = 0; i < count; i++) format.decode(codes[from + i] as number);
}

function float16Word(code: number): number {
  const sign = (code & 0x8000) << 16;
  const magnitude = code & 0x7fff;
  if (magnitude >= 0x7c00) return sign | 0x7f800000 | ((magnitude << 13) & 0x7fffff);
  if (magnitude >= 0x400) return sign | ((magnitude << 13) + 0x38000000);
  if (magnitude === 0) return sign;
  // Shifted until its first 1 is the implied bit, which then adds 1 to the exponent field.
  const places = Math.clz32(magnitude) - 8;
  return sign | (((125 - places) << 23) + (magnitude << places));
}

const tables = /* @__PURE__ */ new WeakMap<FloatFormat, Uint32Array>();

/** Float32 bits of every code of a format of up to 8 bits, made at first use. */
function decodeTable(format: FloatFormat): Uint32Array {
  const known = tables.get(format);
  if (known) return known;
  const { bits, mantissaBits, nanEncoding } = format;
  const words = new Uint32Array(2 ** bits);
  const numbers = new Float32Array(words.buffer);
  for (let code = 0; code < words.length; code++) {
    const value = format.decode(code);
    if (!Number.isNaN(value)) numbers[code] = value;
    else {
      const sign =
        nanEncoding !== "negativeZero" && format.isSigned ? (code << (32 - bits)) & 0x80000000 : 0;
      const payload = nanEncoding === "ieee" ? (code << (23 - mantissaBits)) & 0x7fffff : 0x400000;
      words[code] = sign | 0x7f800000 | payload;
    }
  }
  tables.set(format, words);
  return words;
}
