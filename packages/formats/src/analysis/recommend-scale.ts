import { checkFormat, type FloatFormat } from "../format.js";
import { requireKnown } from "../known-options.js";
import { ceilExponent } from "../scaled/blocks.js";
import type { ExponentHistogram } from "./histogram.js";

/** Shares, from 0 to 1, of the finite numbers. */
export interface ExpectedShares {
  readonly overflow: number;
  /** Not 0, but rounded to 0. */
  readonly underflow: number;
  readonly subnormal: number;
}

/** A recommended loss scale, and its expected effect on the numbers. */
export interface ScaleRecommendation extends ExpectedShares {
  /** A power of two to multiply the numbers by. */
  readonly scale: number;
  /** log₂ scale. */
  readonly exponent: number;
  /** The expected shares without a scale. */
  readonly unscaled: ExpectedShares;
  /** One sentence or two on why, with these figures. */
  readonly explanation: string;
}

/** Options of recommending a loss scale. */
export interface RecommendScaleOptions {
  /** Powers of two to stay below the largest scale possible, for numbers that will grow. Default 0. */
  readonly margin?: number;
  /** Share of the finite numbers that may overflow, for the sake of the others. Default 0. */
  readonly allowedOverflow?: number;
}

/**
 * Recommends a loss scale: 1 where all numbers are in the format's range without a scale (no overflow, none subnormal).
 * Otherwise the largest power of two at which no more numbers than allowed overflow, from 2⁻¹²⁶ to 2¹²⁷: too large a scale
 * causes infinities, too small a one loses numbers silently. Expectations assume that the numbers of a bin are evenly
 * distributed. With the default options the expected overflow is exactly 0.
 * @throws TypeError if `format` has no codes.
 * @throws RangeError if the format has no zero (float8e8m0fnu), or an option is out of range.
 */
export function recommendScale(
  histogram: ExponentHistogram,
  format: FloatFormat,
  options: RecommendScaleOptions = {},
): ScaleRecommendation {
  checkFormat("recommendScale", format);
  requireKnown("recommendScale", options, ["margin", "allowedOverflow"]);
  const { margin = 0, allowedOverflow = 0 } = options;
  if (!format.hasZero) {
    throw new RangeError(`recommendScale: ${format.name} is a format of scales: name an element's`);
  }
  if (!(Number.isInteger(margin) && Math.abs(margin) <= 127)) {
    throw new RangeError(`recommendScale: margin ${String(margin)} is no integer up to 127`);
  }
  if (!(allowedOverflow >= 0 && allowedOverflow < 1)) {
    throw new RangeError(`recommendScale: allowedOverflow ${allowedOverflow} is not in [0, 1)`);
  }
  const unscaled = expectedShares(histogram, format, 0);
  if (histogram.max === 0) {
    const explanation =
      "There is no finite number but 0, so nothing tells which scale to take: if these numbers were rounded before, count what became 0 " +
      "where they were stored.";
    return { scale: 1, exponent: 0, ...unscaled, unscaled, explanation };
  }
  if (unscaled.overflow + unscaled.underflow + unscaled.subnormal === 0) {
    const explanation = `${format.name} holds all these numbers without overflow or subnormals: no scale is needed.`;
    return { scale: 1, exponent: 0, ...unscaled, unscaled, explanation };
  }
  let limit = -ceilExponent(histogram.max, format.finfo.max, -127, 126);
  while (
    limit < 127 &&
    allowedOverflow > 0 &&
    expectedShares(histogram, format, limit + 1).overflow <= allowedOverflow
  ) {
    limit += 1;
  }
  const exponent = Math.min(Math.max(limit - margin, -126), 127);
  const shares = expectedShares(histogram, format, exponent);
  return {
    scale: 2 ** exponent,
    exponent,
    ...shares,
    unscaled,
    explanation: explain(histogram, format, exponent, margin, shares, unscaled),
  };
}

function expectedShares(
  histogram: ExponentHistogram,
  format: FloatFormat,
  exponent: number,
): ExpectedShares {
  const { max, smallestNormal, smallestSubnormal } = format.finfo;
  const scale = 2 ** exponent;
  const { count, zeros, infinities, nans } = histogram;
  const finite = count - infinities - nans;
  if (finite === 0) return { overflow: 0, underflow: 0, subnormal: 0 };
  const below = (magnitude: number): number => countBelow(histogram, magnitude / scale);
  const underflow = below(smallestSubnormal / 2);
  const overflow = finite - zeros - below(max + format.ulp(max) / 2);
  return {
    overflow: overflow / finite,
    underflow: underflow / finite,
    subnormal: (below(smallestNormal) - underflow) / finite,
  };
}

/** The expected count of numbers with 0 < magnitude < limit. */
function countBelow(histogram: ExponentHistogram, limit: number): number {
  const { firstExponent, counts, min, max } = histogram;
  let sum = 0;
  counts.forEach((count, i) => {
    const low = Math.max(2 ** (firstExponent + i), min);
    const high = Math.min(2 ** (firstExponent + i + 1), max);
    if (limit > high) sum += count;
    else if (limit > low) sum += (count * (limit - low)) / (high - low);
  });
  return sum;
}

function explain(
  { max }: ExponentHistogram,
  { name, finfo }: FloatFormat,
  exponent: number,
  margin: number,
  scaled: ExpectedShares,
  unscaled: ExpectedShares,
): string {
  const reach = `At 2^${exponent} the largest magnitude, ${digits(max)}, becomes ${digits(max * 2 ** exponent)}; ${name} ends at ${digits(finfo.max, 6)}`;
  const room = margin === 0 ? "" : ` (a margin of ${margin} powers of two is kept)`;
  return `${reach}${room}. Expected: ${sharesText(scaled)}; without a scale: ${sharesText(unscaled)}.`;
}

const digits = (value: number, count = 4): string => String(Number(value.toPrecision(count)));

const percent = (share: number): string => `${Number((100 * share).toPrecision(3))} %`;

const sharesText = ({ overflow, underflow, subnormal }: ExpectedShares): string =>
  `${percent(overflow)} overflow, ${percent(underflow)} underflow to 0, ${percent(subnormal)} subnormal`;
