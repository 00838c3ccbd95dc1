import { type Numbers, roundArray } from "../arrays.js";
import { exponentOf, powerOfTwo } from "../exponent.js";
import { checkFormat, type FloatFormat } from "../format.js";
import { numbersOf } from "../numbers-of.js";

/** The effect of rounding to a format on numbers. Shares are from 0 to 1. */
export interface FormatComparison {
  /** All elements. */
  readonly count: number;
  /** Share of all elements that are NaN or infinite. The members below exclude them. */
  readonly nonFinite: number;
  /** Share of the finite that become infinite or NaN, or, where the format has neither, are cut to its maximum. */
  readonly overflow: number;
  /** Share of the finite that are not 0 and become 0, without numbers that were already rounded to 0: see `zeros`. */
  readonly underflow: number;
  /** Share of the finite that are already 0. For numbers that were stored in a narrow format, it includes an unknown share of underflow. */
  readonly zeros: number;
  /** Share of the finite that become subnormal. */
  readonly subnormal: number;
  /** Largest |rounded − value| / |value| where both are finite and the value is not 0. An underflow has 1. */
  readonly maxRelativeError: number;
  /** Mean of the same. */
  readonly meanRelativeError: number;
  /**
   * Signal to quantisation noise in dB, 10 · log₁₀(Σ value² / Σ (rounded − value)²), over elements that are finite before and
   * after. Infinity where nothing changes.
   */
  readonly sqnr: number;
}

const chunkLength = 8192;

/**
 * Rounds numbers to nearest even and reports the losses. Memory is constant, except for a decoded copy of arrays of codes.
 * @throws TypeError if `numbers` is no array of numbers, or `format` has no codes.
 */
export function compare(numbers: Numbers, format: FloatFormat): FormatComparison {
  checkFormat("compare", format);
  const values = numbersOf("compare", numbers);
  const { max, smallestNormal } = format.finfo;
  // Formats with neither infinity nor NaN end in an odd code: the tie beyond the maximum would round away from it.
  const cut =
    !format.hasInfinity && format.nanEncoding === "none" ? max + format.ulp(max) / 2 : Infinity;
  const unit = powerOfTwo(-Math.min(Math.max(exponentOf(largest(values)), -1000), 1000));
  const length = Math.min(chunkLength, values.length);
  const chunk =
    values instanceof Float32Array ? new Float32Array(length) : new Float64Array(length);
  const rounded = new Float32Array(length);
  let nonFinite = 0;
  let overflow = 0;
  let underflow = 0;
  let zeros = 0;
  let subnormal = 0;
  let compared = 0;
  let maxError = 0;
  let sumOfErrors = 0;
  let signal = 0;
  let noise = 0;
  for (let start = 0; start < values.length; start += length) {
    const count = Math.min(length, values.length - start);
    for (let i = 0; i < count; i++) {
      const value = values[start + i] as number;
      chunk[i] = Number.isFinite(value) ? value : 0;
    }
    roundArray(chunk.subarray(0, count), format, rounded);
    for (let i = 0; i < count; i++) {
      const value = values[start + i] as number;
      if (!Number.isFinite(value)) {
        nonFinite += 1;
        continue;
      }
      if (value === 0) zeros += 1;
      const result = rounded[i] as number;
      const magnitude = Math.abs(result);
      if (!(magnitude < Infinity)) {
        overflow += 1;
        continue;
      }
      if (Math.abs(value) >= cut) overflow += 1;
      if (magnitude < smallestNormal && magnitude > 0) subnormal += 1;
      if (value === 0) continue;
      if (magnitude === 0) underflow += 1;
      const error = Math.abs((result - value) / value);
      compared += 1;
      sumOfErrors += error;
      if (error > maxError) maxError = error;
      // A power of two common to all keeps squares within float64.
      signal += (value * unit) ** 2;
      noise += ((result - value) * unit) ** 2;
    }
  }
  const finite = values.length - nonFinite;
  return {
    count: values.length,
    nonFinite: share(nonFinite, values.length),
    overflow: share(overflow, finite),
    underflow: share(underflow, finite),
    zeros: share(zeros, finite),
    subnormal: share(subnormal, finite),
    maxRelativeError: maxError,
    meanRelativeError: share(sumOfErrors, compared),
    sqnr: noise === 0 ? Infinity : 10 * Math.log10(signal / noise),
  };
}

const share = (part: number, whole: number): number => (whole === 0 ? 0 : part / whole);

function largest(values: ArrayLike<number>): number {
  let max = 0;
  for (let i = 0; i < values.length; i++) {
    const magnitude = Math.abs(values[i] as number);
    if (magnitude > max && magnitude < Infinity) max = magnitude;
  }
  return max;
}
