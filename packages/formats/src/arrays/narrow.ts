import { checkElement } from "./arguments.js";

/**
 * Writes `count` numbers from `values[from]` on as float32 from which a second rounding, to a format at least two bits narrower,
 * gives what one rounding from float64 gives. NaNs become the positive quiet one.
 *
 * For deterministic roundings what is inexact is rounded to odd: it ends in a 1 (Boldo and Melquiond, "When double rounding is
 * odd", 2005). Stochastic rounding compares with a threshold that is a float32 at that magnitude: for it, numbers are truncated,
 * and those beyond every float32 are Infinity.
 * @param words the bits of `numbers`.
 */
export function narrowNumbers(
  operation: string,
  values: ArrayLike<number>,
  from: number,
  count: number,
  numbers: Float32Array,
  words: Uint32Array,
  isStochastic: boolean,
): void {
  const lastBit = isStochastic ? 0 : 1;
  for (let i = 0; i < count; i++) {
    const value = values[from + i] as number;
    if (typeof value !== "number") checkElement(operation, value, from + i);
    numbers[i] = value;
    const nearest = numbers[i] as number;
    if (nearest !== value) {
      const magnitude = Math.abs(value);
      if (Number.isNaN(value)) words[i] = 0x7fc00000;
      else if (!isStochastic || magnitude < 2 ** 128) {
        const tooLarge = Math.abs(nearest) > magnitude ? 1 : 0;
        words[i] = ((words[i] as number) - tooLarge) | lastBit;
      }
    }
  }
}
