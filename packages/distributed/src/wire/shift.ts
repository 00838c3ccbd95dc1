import { largestMagnitude } from "./arithmetic.js";
import type { Breath } from "./breath.js";

/** Elements between two breaths. */
export const pieceLength: number = 1 << 16;

/**
 * The power of two by which numbers are multiplied before they are stored in a 16-bit format, so that the largest is finite there:
 * gradients are sums of products, and may exceed the largest float16 without being wrong. It comes near the end of float16's range,
 * because small numbers would become zero, and rounding may reach the next power of two.
 * @param exponent that of the largest finite number; undefined where all are zero
 */
export const shiftFor = (exponent: number | undefined): number =>
  exponent === undefined ? largestShift : Math.min(14 - exponent, largestShift);

/** Multiplication by 2^126 and by 2^−126 is exact in float32 where results are normal. */
const largestShift = 126;

/** The exponent of the largest finite number; undefined where all finite numbers are zero. */
export async function largestExponent(
  values: Float32Array,
  breath: Breath,
): Promise<number | undefined> {
  const words = new Uint32Array(values.buffer, values.byteOffset, values.length);
  let largest = 0;
  for (let start = 0; start < words.length; start += pieceLength) {
    const end = Math.min(start + pieceLength, words.length);
    largest = Math.max(largest, largestMagnitude(words.subarray(start, end)));
    await breath.after(end - start);
  }
  return largest === 0 ? undefined : Math.max(largest >>> 23, 1) - 127;
}
