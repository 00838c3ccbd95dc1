import { type EncodeArrayOptions, encodeArray } from "../arrays.js";
import { exponentOf, powerOfTwo } from "../exponent.js";
import type { CodeArray, FloatFormat } from "../format.js";

/**
 * The division of a flat array of rows into blocks that share a scale. Blocks end with their row, so the last may be
 * shorter.
 */
export interface Blocks {
  readonly length: number;
  readonly columns: number;
  readonly blockSize: number;
  readonly count: number;
}

/**
 * @param columns elements of a row; all `length` by default.
 * @throws RangeError if the rows do not divide the elements.
 */
export function blocksOf(
  name: string,
  length: number,
  columns: number = length,
  blockSize: number = columns,
): Blocks {
  if (length === 0) return { length, columns, blockSize, count: 0 };
  if (!(Number.isSafeInteger(columns) && columns > 0 && length % columns === 0)) {
    throw new RangeError(
      `${name}: ${length} elements are no rows of ${String(columns)}: pass columns that divide them`,
    );
  }
  return {
    length,
    columns,
    blockSize,
    count: (length / columns) * Math.ceil(columns / blockSize),
  };
}

/** First element of a block. The end of a block is the start of the next. */
export function blockStart({ length, columns, blockSize, count }: Blocks, block: number): number {
  if (block >= count) return length;
  const perRow = Math.ceil(columns / blockSize);
  return Math.floor(block / perRow) * columns + (block % perRow) * blockSize;
}

/** The largest finite magnitude from `start` to `end`, and whether all are finite; 0 where there is none. */
export function amaxOf(
  values: ArrayLike<number>,
  start: number,
  end: number,
): { amax: number; allFinite: boolean } {
  let amax = 0;
  let allFinite = true;
  for (let i = start; i < end; i++) {
    const magnitude = Math.abs(values[i] as number);
    if (magnitude < Infinity) amax = magnitude > amax ? magnitude : amax;
    else allFinite = false;
  }
  return { amax, allFinite };
}

/** The least k from `low` to `high` with amax ≤ max · 2^k, decided exactly; `high` where there is none. */
export function ceilExponent(amax: number, max: number, low: number, high: number): number {
  // Far outside of every format's exponents only the bounds answer, and powers of two stay within float64.
  const magnitude = Math.min(Math.max(amax, 2 ** -300), 2 ** 300);
  const exponent = exponentOf(magnitude);
  const maxExponent = exponentOf(max);
  const isAbove = magnitude * powerOfTwo(-exponent) > max * powerOfTwo(-maxExponent);
  return Math.min(Math.max(exponent - maxExponent + (isAbove ? 1 : 0), low), high);
}

const chunk = 16384;

/**
 * The codes of `values` divided by the scale of their block. The quotient is float64's. Blocks whose scale is NaN or 0 have
 * codes 0.
 */
export function encodeQuotients<Codes extends CodeArray>(
  values: ArrayLike<number>,
  blocks: Blocks,
  scales: Float64Array,
  format: FloatFormat<Codes>,
  options: EncodeArrayOptions,
): Codes {
  const { length, count } = blocks;
  const codes = format.createCodes(length);
  // Stochastic rounding numbers its random words by element, so it takes all elements at once.
  const size = options.rounding === "stochastic" ? length : Math.min(chunk, length);
  const quotients = new Float64Array(size);
  let filled = 0;
  let done = 0;
  const flush = (): void => {
    encodeArray(
      quotients.subarray(0, filled),
      format,
      codes.subarray(done, done + filled) as Codes,
      options,
    );
    done += filled;
    filled = 0;
  };
  for (let block = 0; block < count; block++) {
    const scale = scales[block] as number;
    const end = blockStart(blocks, block + 1);
    for (let i = blockStart(blocks, block); i < end; i++) {
      quotients[filled++] = scale > 0 ? (values[i] as number) / scale : 0;
      if (filled === size) flush();
    }
  }
  if (filled > 0) flush();
  return codes;
}

/** Multiplies each block by its scale, in place; products are rounded once, to float32. */
export function multiplyBlocks(values: Float32Array, blocks: Blocks, scales: Float64Array): void {
  for (let block = 0; block < blocks.count; block++) {
    const scale = scales[block] as number;
    const end = blockStart(blocks, block + 1);
    for (let i = blockStart(blocks, block); i < end; i++) {
      values[i] = (values[i] as number) * scale;
    }
  }
}
