/** Number of bins of an exponent histogram: one for each exponent field of a float32. */
export const EXPONENT_BINS = 256;

/**
 * Words of the counts: the histogram, and four words from observed stores of the backward pass. These are the numbers that were rounded
 * from nonzero to zero, those that were 0 before, the bits of the largest magnitude as float32, and the number of stored elements.
 */
export const EXPONENT_WORDS: number = EXPONENT_BINS + 4;

/** The range of a 16-bit format in exponent fields (float32's, biased by 127). */
interface Range {
  /** The least field whose numbers do not round to zero: half of the smallest subnormal number, and above. */
  readonly least: number;
  /** The largest field of numbers that stay finite when doubled. */
  readonly most: number;
}

/** The ranges by format. */
export const exponentRanges: Readonly<Record<"float16" | "bfloat16", Range>> = {
  float16: { least: 127 - 25, most: 127 + 14 },
  // Every normal float32 is above bfloat16's smallest subnormal number.
  bfloat16: { least: 1, most: 127 + 126 },
};

/** The largest power of two, up or down, by which one decision changes a scale. */
const MAX_SHIFT = 32;

/**
 * The power of two by which gradients with these exponents should be scaled further. It is 0 where at most the `target` share of the
 * nonzero ones underflows to zero in a 16-bit format, and otherwise the least that brings the share down to the target. The largest
 * gradient stays in the lower half of the format's range (2^15 in float16); the power is negative where it is above. Exact in integers:
 * the share is counted in steps of 2^-16.
 *
 * Numbers that stores rounded to zero have no known exponent: where their share exceeds the target, the scale goes up as far as the
 * largest gradient allows. Where all gradients are 0 and no store has rounded, the power is 1: the scale doubles, as without a target.
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
 * The share of nonzero gradients that underflow to zero in a 16-bit format: the larger of the shares by exponents and by the stores of
 * the backward pass; 0 where there are none.
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

/** The words of the observed stores, with the exponent field of the largest number. */
function storesIn(words: ArrayLike<number>) {
  const [lost, zeros, largest, elements] = [0, 1, 2, 3].map((i) =>
    count(words, EXPONENT_BINS + i),
  ) as [number, number, number, number];
  return { lost, nonZero: elements - zeros, top: Math.min(largest >>> 23, 254) };
}

const count = (words: ArrayLike<number>, index: number): number => words[index] ?? 0;
