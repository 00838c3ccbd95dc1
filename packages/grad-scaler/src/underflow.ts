/** Number of bins of an exponent histogram: one for each exponent field of a float32. */
export const EXPONENT_BINS = 256;

/**
 * Words of what is counted: the histogram, and then what stores of the backward pass tell, where somebody observes them: how many
 * numbers that were not 0 they rounded to zero, how many were 0 before, the bits of the largest magnitude as float32, and how many
 * numbers they stored.
 */
export const EXPONENT_WORDS: number = EXPONENT_BINS + 4;

/** Exponent fields (float32's, biased by 127) that decide what a 16-bit format can hold. */
interface Range {
  /** The least field whose numbers do not round to zero: half of the smallest subnormal number, and above. */
  readonly least: number;
  /** The largest field below half of the range: of numbers that can be doubled and are still finite. */
  readonly most: number;
}

/** By format. */
export const exponentRanges: Readonly<Record<"float16" | "bfloat16", Range>> = {
  float16: { least: 127 - 25, most: 127 + 14 },
  // Every normal float32 is above bfloat16's smallest subnormal number.
  bfloat16: { least: 1, most: 127 + 126 },
};

/** The largest power of two, up or down, by which one decision changes a scale. */
const MAX_SHIFT = 32;

/**
 * The power of two by which gradients with these exponents should be scaled further: 0 where at most the `target` share of
 * the non-zero ones underflows to zero in a 16-bit format, and else the least that brings the share down to it; but never
 * so much that the largest gradient leaves the lower half of the format's range (2^15 in float16), and negative where it
 * has left it already. Exact in integers: the share is counted in steps of 2^-16.
 *
 * Of what stores have rounded to zero nobody knows the exponent any more: where that is more than the target, the scale goes up as far
 * as the largest gradient allows. Where all gradients are 0 and no store tells why, the power is 1: it doubles, as without a target.
 *
 * @param exponents {@link EXPONENT_WORDS}, or the 256 counts alone, by float32 exponent field, of gradients that carry the present
 * scale. Field 0 (zeros and subnormal numbers) and 255 (infinities and NaN) do not count.
 */
export function underflowShift(
  exponents: ArrayLike<number>,
  target: number,
  format: "float16" | "bfloat16",
): number {
  const { least, most } = exponentRanges[format];
  let total = 0;
  let top = 0;
  for (let field = 1; field < 255; field += 1) {
    total += count(exponents, field);
    if (count(exponents, field) > 0) top = field;
  }
  const stores = storesIn(exponents);
  if (total + stores.nonZero === 0) return count(exponents, 0) > 0 ? 1 : 0;
  const allowed = (of: number): number => Math.floor((Math.round(target * 2 ** 16) * of) / 2 ** 16);
  let field = 1;
  for (let below = count(exponents, 1); field < 254 && below <= allowed(total); ) {
    field += 1;
    below += count(exponents, field);
  }
  const wanted = stores.lost > allowed(stores.nonZero) ? MAX_SHIFT : Math.max(least - field, 0);
  const shift = Math.min(wanted, most - Math.max(top, stores.top));
  return Math.max(-MAX_SHIFT, Math.min(shift, MAX_SHIFT));
}

/**
 * The share of non-zero gradients that underflow to zero in a 16-bit format: of the gradients by their exponents, or of what the stores
 * of the backward pass rounded, whichever is more; 0 where there are none.
 */
export function underflowShare(
  exponents: ArrayLike<number>,
  format: "float16" | "bfloat16",
): number {
  let total = 0;
  let lost = 0;
  for (let field = 1; field < 255; field += 1) {
    total += count(exponents, field);
    if (field < exponentRanges[format].least) lost += count(exponents, field);
  }
  const stores = storesIn(exponents);
  return Math.max(lost / Math.max(total, 1), stores.lost / Math.max(stores.nonZero, 1));
}

/** What the stores of the backward pass tell, with the exponent field of the largest number. */
function storesIn(words: ArrayLike<number>) {
  const [lost, zeros, largest, elements] = [0, 1, 2, 3].map((i) =>
    count(words, EXPONENT_BINS + i),
  ) as [number, number, number, number];
  return { lost, nonZero: elements - zeros, top: Math.min(largest >>> 23, 254) };
}

const count = (words: ArrayLike<number>, index: number): number => words[index] ?? 0;
