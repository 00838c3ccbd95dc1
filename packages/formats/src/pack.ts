/**
 * Two 16-bit codes in one u32, the first in its low half, as WGSL's `pack2x16float` and a little-endian Uint16Array have them.
 *
 * @throws RangeError for what is no integer from 0 to 65535.
 */
export const pack2 = (first: number, second: number): number =>
  (code16(first) | (code16(second) << 16)) >>> 0;

function code16(code: number): number {
  if (Number.isInteger(code) && code >= 0 && code <= 0xffff) return code;
  throw new RangeError(`pack2: ${String(code)} is no 16-bit code: pass an integer from 0 to 65535`);
}

/** The two 16-bit codes in a u32, the low half first. */
export const unpack2 = (word: number): readonly [first: number, second: number] => [
  word & 0xffff,
  word >>> 16,
];
