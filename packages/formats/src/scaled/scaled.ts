import { encodeArrayOptions } from "../arrays/arguments.js";
import { decodeArray, type EncodeArrayOptions, type Numbers } from "../arrays.js";
import { type CodeArray, checkFormat, type FloatFormat } from "../format.js";
import { requireKnown } from "../known-options.js";
import { numbersOf } from "../numbers-of.js";
import {
  amaxOf,
  blockStart,
  blocksOf,
  ceilExponent,
  encodeQuotients,
  multiplyBlocks,
} from "./blocks.js";

/** Codes with one float32 scale for all, or one for each row: number = decoded code · scale. */
export interface ScaledArray<Codes extends CodeArray = CodeArray> {
  readonly format: FloatFormat<Codes>;
  readonly codes: Codes;
  /** One, or one a row. What a decoded code is multiplied by: TransformerEngine's `scale_inv`, `torch._scaled_mm`'s scale. */
  readonly scales: Float32Array;
  /** Elements of a row. */
  readonly columns: number;
}

/** Options of choosing a scale. */
export interface ScaleOptions {
  /** Only powers of two, rounded up: multiplying by them is exact. Default false. */
  readonly powerOfTwo?: boolean;
}

/** Options of encoding with a scale. */
export interface ScaledOptions extends ScaleOptions, EncodeArrayOptions {
  /** Elements of a row; gives each row a scale of its own. Default: one scale for all. */
  readonly columns?: number;
}

/**
 * The scale that brings the largest magnitude `amax` to the format's largest number: amax / max as a float32, from 2⁻¹²⁶ to
 * the largest float32; with `powerOfTwo` the least power of two for which amax ≤ max · scale, from 2⁻¹²⁶ to 2¹²⁷. It is 1
 * where amax is 0, NaN or infinite, so that nothing is divided by 0 and one bad step does not spoil a history of amaxes.
 */
export function scaleOf(amax: number, format: FloatFormat, options: ScaleOptions = {}): number {
  requireKnown("scaleOf", options, ["powerOfTwo"]);
  if (!(amax > 0 && amax < Infinity)) return 1;
  const { max } = format.finfo;
  if (options.powerOfTwo) return 2 ** ceilExponent(amax, max, -126, 127);
  return Math.fround(Math.min(Math.max(amax / max, 2 ** -126), (2 - 2 ** -23) * 2 ** 127));
}

/**
 * Encodes numbers after dividing them by the scale of all, or of their row: `scaleOf` the largest finite magnitude.
 *
 * Overflow of finite numbers saturates unless `saturate: false` says otherwise, since a scale that was rounded down leaves the
 * largest number a little above the format's. NaN and ±Infinity do not count for the scale. They become what the format makes of
 * them: infinity, or NaN in formats that have no infinity, or the largest number in those that have neither. With `saturate: true`
 * infinities become the largest number, too. The quotient is float64's, and is rounded once.
 * @throws TypeError if `values` are no numbers, `format` has no codes, or options do not fit.
 * @throws RangeError if `columns` does not divide the elements.
 */
export function encodeScaled<Codes extends CodeArray>(
  values: Numbers,
  format: FloatFormat<Codes>,
  options: ScaledOptions = {},
): ScaledArray<Codes> {
  checkFormat("encodeScaled", format);
  requireKnown("encodeScaled", options, ["columns", "powerOfTwo", ...encodeArrayOptions]);
  const { columns, powerOfTwo = false, saturate, ...encoding } = options;
  const numbers = numbersOf("encodeScaled", values);
  const blocks = blocksOf("encodeScaled", numbers.length, columns);
  const scales = Float32Array.from({ length: blocks.count }, (_, row) => {
    const { amax } = amaxOf(numbers, blockStart(blocks, row), blockStart(blocks, row + 1));
    return scaleOf(amax, format, { powerOfTwo });
  });
  const codes = encodeQuotients(numbers, blocks, Float64Array.from(scales), format, {
    ...encoding,
    saturate: saturate === undefined ? true : saturate,
  });
  if (saturate === undefined) keepInfinities(numbers, format, codes);
  return { format, codes, scales, columns: blocks.columns };
}

/** Replaces the codes of infinities by what the format makes of them, so that saturation hides no overflow of before. */
function keepInfinities(numbers: ArrayLike<number>, format: FloatFormat, codes: CodeArray): void {
  for (let i = 0; i < numbers.length; i++) {
    const number = numbers[i] as number;
    if (number === Infinity || number === -Infinity) codes[i] = format.encode(number);
  }
}

/**
 * The numbers of a scaled array, rounded once to float32, in `out` or a new array.
 * @throws RangeError if `out` is shorter or the scales are not one a row.
 */
export function decodeScaled(scaled: ScaledArray, out?: Float32Array): Float32Array {
  const { format, codes, scales, columns } = scaled;
  const blocks = blocksOf("decodeScaled", codes.length, columns);
  if (scales.length !== blocks.count) {
    throw new RangeError(
      `decodeScaled: ${blocks.count} rows need as many scales, not ${scales.length}`,
    );
  }
  const values = decodeArray(codes, format, out);
  multiplyBlocks(values, blocks, Float64Array.from(scales));
  return values;
}
