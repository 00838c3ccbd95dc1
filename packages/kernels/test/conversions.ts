/** Inputs of the tests that compare conversions on a GPU with those in TypeScript, and their comparison. */

/** Float32 patterns: every upper half with the lower halves that decide rounding, and pseudo-random ones in between. */
export const patterns: Uint32Array<ArrayBuffer> = (() => {
  // Midpoints of all formats and their neighbours; for float16 the last 13 bits decide, for subnormal results more.
  const first = [0, 1, 0x0fff, 0x1000, 0x1001, 0x3000, 0x7fff];
  const lower = [...first, 0x8000, 0x8001, 0xefff, 0xf000, 0xf001, 0xffff];
  const words = new Uint32Array(65_536 * 16);
  let at = 0;
  let state = 0x12345678;
  for (let upper = 0; upper < 65_536; upper++) {
    for (const half of lower) words[at++] = (upper << 16) | half;
    while (at % 16 !== 0) {
      state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x6d2b79f5;
      words[at++] = (upper << 16) | (state >>> 16);
    }
  }
  return words;
})();

/** The same bits as numbers. */
export const floats: Float32Array<ArrayBuffer> = new Float32Array(patterns.buffer);

export const codes16: Uint16Array<ArrayBuffer> = Uint16Array.from(
  { length: 65_536 },
  (_, code) => code,
);

export const bitsOf = (values: Float32Array): Uint32Array =>
  new Uint32Array(values.buffer, values.byteOffset, values.length);

export const isNaNBits = (word: number): boolean => (word & 0x7fffffff) > 0x7f800000;

const hex = (word: number | undefined): string => `0x${(word ?? 0).toString(16)}`;

/** Inputs whose results differ: a few in words, and how many. */
export function differences(
  inputs: ArrayLike<number>,
  got: ArrayLike<number>,
  want: ArrayLike<number>,
): readonly string[] {
  const lengths = [inputs.length, got.length, want.length];
  if (new Set(lengths).size > 1) return [`lengths ${lengths.join(", ")}`];
  const found: string[] = [];
  let count = 0;
  for (let i = 0; i < want.length; i++)
    if (got[i] !== want[i] && count++ < 5)
      found.push(`${hex(inputs[i])} gives ${hex(got[i])} instead of ${hex(want[i])}`);
  return count > 5 ? [...found, `${count} of ${want.length} in all`] : found;
}
