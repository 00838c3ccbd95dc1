/**
 * Two 16-bit codes in one u32, the first in its low half, as WGSL's `pack2x16float` and a little-endian Uint16Array have them.
 * Only the low 16 bits of each are used.
 */
export const pack2 = (first: number, second: number): number =>
  ((first & 0xffff) | (second << 16)) >>> 0;

/** The two 16-bit codes in a u32, the low half first. */
export const unpack2 = (word: number): readonly [first: number, second: number] => [
  word & 0xffff,
  word >>> 16,
];
