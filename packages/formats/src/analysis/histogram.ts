import type { Numbers } from "../arrays.js";
import { exponentOf } from "../exponent.js";
import { numbersOf } from "../numbers-of.js";

/** The number of magnitudes in each power of two. Plain data that can be stored, sent and added up. */
export interface ExponentHistogram {
  /** All numbers, the zeros, infinities and NaNs among them. */
  readonly count: number;
  readonly zeros: number;
  readonly infinities: number;
  readonly nans: number;
  /** Smallest magnitude that is not 0, and largest that is finite; both 0 where there is none. */
  readonly min: number;
  readonly max: number;
  /** `counts[i]` magnitudes lie in [2^(firstExponent + i), 2^(firstExponent + i + 1)); no zeros at the ends. */
  readonly firstExponent: number;
  readonly counts: readonly number[];
}

const lowest = -1074;
const highest = 1023;

/**
 * Counts the exponents of numbers. Memory is constant, except for a decoded copy of arrays of codes; `addHistograms` joins
 * the histograms of parts.
 * @throws TypeError if `numbers` is no array of numbers.
 */
export function exponentHistogram(numbers: Numbers): ExponentHistogram {
  const values = numbersOf("exponentHistogram", numbers);
  const bins = new Float64Array(highest - lowest + 1);
  let zeros = 0;
  let infinities = 0;
  let nans = 0;
  let min = Infinity;
  let max = 0;
  for (let i = 0; i < values.length; i++) {
    const magnitude = Math.abs(values[i] as number);
    if (magnitude === 0) zeros += 1;
    else if (magnitude < Infinity) {
      const bin = floorLog2(magnitude) - lowest;
      bins[bin] = (bins[bin] as number) + 1;
      if (magnitude < min) min = magnitude;
      if (magnitude > max) max = magnitude;
    } else if (magnitude === Infinity) infinities += 1;
    else nans += 1;
  }
  const first = bins.findIndex((n) => n > 0);
  const last = bins.findLastIndex((n) => n > 0);
  return {
    count: values.length,
    zeros,
    infinities,
    nans,
    min: max === 0 ? 0 : min,
    max,
    firstExponent: first < 0 ? 0 : first + lowest,
    counts: first < 0 ? [] : [...bins.subarray(first, last + 1)],
  };
}

/** The histogram of both parts together. */
export function addHistograms(a: ExponentHistogram, b: ExponentHistogram): ExponentHistogram {
  const parts = [a, b].filter(({ counts }) => counts.length > 0);
  const firstExponent = Math.min(...parts.map((part) => part.firstExponent));
  const end = Math.max(...parts.map((part) => part.firstExponent + part.counts.length));
  const counts =
    parts.length === 0
      ? []
      : Array.from({ length: end - firstExponent }, (_, i) =>
          parts.reduce(
            (n, part) => n + (part.counts[firstExponent + i - part.firstExponent] ?? 0),
            0,
          ),
        );
  return {
    count: a.count + b.count,
    zeros: a.zeros + b.zeros,
    infinities: a.infinities + b.infinities,
    nans: a.nans + b.nans,
    min: parts.length === 0 ? 0 : Math.min(...parts.map(({ min }) => min)),
    max: Math.max(a.max, b.max),
    firstExponent: parts.length === 0 ? 0 : firstExponent,
    counts,
  };
}

/** ⌊log₂ magnitude⌋ of any positive float64. */
function floorLog2(magnitude: number): number {
  const exponent = exponentOf(magnitude);
  return exponent >= -1022 ? exponent : exponentOf(magnitude * 2 ** 52) - 52;
}
