import type { FloatFormat } from "../src/index.js";

/**
 * Float32 bits: every sign, exponent and first mantissa bits with the last bits at the places where roundings to fewer bits
 * change their mind. 65,536 / `stride` upper halves, 16 lower ones each.
 */
export function float32Words(stride = 1): Uint32Array {
  const lows = [
    0, 1, 2, 0xfff, 0x1000, 0x1001, 0x1fff, 0x2fff, 0x3000, 0x3001, 0x7fff, 0x8000, 0x8001, 0xefff,
    0xfffe, 0xffff,
  ];
  const words = new Uint32Array(Math.ceil(65536 / stride) * lows.length);
  let next = 0;
  for (let high = 0; high < 65536; high += stride) {
    for (const low of lows) words[next++] = (high << 16) | low;
  }
  return words;
}

export const isWithoutNaN = (format: FloatFormat): boolean => format.nanEncoding === "none";

/** These bits as numbers, without NaN where the format has none. */
export function numbersFor(format: FloatFormat, words: Uint32Array): Float32Array {
  const numbers = new Float32Array(words.buffer);
  return isWithoutNaN(format) ? numbers.map((x) => (Number.isNaN(x) ? 1 : x)) : numbers;
}

/** The first few indices where something does not hold. */
export function mismatches(length: number, holds: (index: number) => boolean): number[] {
  const found: number[] = [];
  for (let i = 0; i < length && found.length < 10; i++) if (!holds(i)) found.push(i);
  return found;
}
