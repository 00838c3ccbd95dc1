import { encodeArrayOptions } from "../arrays/arguments.js";
import { decodeArray, type EncodeArrayOptions, type Numbers } from "../arrays.js";
import { float4e2m1fn } from "../float4e2m1fn.js";
import { float8e4m3fn } from "../float8e4m3fn.js";
import { requireKnown } from "../known-options.js";
import { numbersOf } from "../numbers-of.js";
import { amaxOf, blockStart, blocksOf, encodeQuotients, multiplyBlocks } from "./blocks.js";

/** Elements that share an e4m3 scale. */
export const nvfp4BlockSize: number = 16;

/** float4e2m1fn in blocks of 16: number = decoded code · decoded e4m3 scale of its block · tensorScale. */
export interface Nvfp4Array {
  /** One element a byte; `packCodes` puts two into one. */
  readonly codes: Uint8Array;
  /** float8e4m3fn codes, one a block, row after row. 127 is NaN: all numbers of that block are. */
  readonly scales: Uint8Array;
  /** A float32. */
  readonly tensorScale: number;
  /** Elements of a row. */
  readonly columns: number;
}

/** Options of encoding in NVFP4. */
export interface Nvfp4Options extends EncodeArrayOptions {
  /** Positive and finite; rounded to float32. Default: `nvfp4TensorScale` of the largest finite magnitude. */
  readonly tensorScale?: number;
  /** Elements of a row; a row begins a block. Default: one row. */
  readonly columns?: number;
}

/**
 * The tensor scale at which the block with the largest magnitude has the largest e4m3 scale: amax / (6 · 448) as a float32,
 * at least 2⁻¹²⁶; 1 where amax is 0, NaN or infinite.
 */
export function nvfp4TensorScale(amax: number): number {
  if (!(amax > 0 && amax < Infinity)) return 1;
  const most = float4e2m1fn.finfo.max * float8e4m3fn.finfo.max;
  return Math.fround(Math.min(Math.max(amax / most, 2 ** -126), 2 ** 127));
}

/**
 * Encodes numbers as NVFP4: elements e2m1, a float8e4m3fn scale for each 16, one float32 scale for all (NVIDIA, "Pretraining
 * large language models with NVFP4", 2025, appendix; TransformerEngine and torchao do the same in float32).
 *
 * The scale of a block is amax / 6 / tensorScale, computed in float64, rounded to the nearest e4m3 and saturated; a block that
 * is not all zeros has at least the smallest, 2⁻⁹. Then each element is divided by what its code will be multiplied by, in
 * float64, and rounded once. A row that is no multiple of 16 ends in a shorter block. A block with a NaN or an infinity has
 * scale NaN and codes 0.
 * @throws RangeError if `columns` does not divide the elements, or `tensorScale` is not a positive float32.
 */
export function encodeNvfp4(values: Numbers, options: Nvfp4Options = {}): Nvfp4Array {
  requireKnown("encodeNvfp4", options, ["tensorScale", "columns", ...encodeArrayOptions]);
  const { columns, tensorScale: given, ...encoding } = options;
  const numbers = numbersOf("encodeNvfp4", values);
  const tensorScale = Math.fround(
    given ?? nvfp4TensorScale(amaxOf(numbers, 0, numbers.length).amax),
  );
  if (!(tensorScale > 0 && tensorScale < Infinity)) {
    throw new RangeError(
      `encodeNvfp4: tensorScale ${String(given)} is no positive float32: pass nvfp4TensorScale(amax)`,
    );
  }
  const blocks = blocksOf("encodeNvfp4", numbers.length, columns, nvfp4BlockSize);
  const scales = Uint8Array.from({ length: blocks.count }, (_, block) => {
    const start = blockStart(blocks, block);
    const { amax, allFinite } = amaxOf(numbers, start, blockStart(blocks, block + 1));
    if (!allFinite) return float8e4m3fn.encode(Number.NaN);
    const scale = float8e4m3fn.encode(amax / float4e2m1fn.finfo.max / tensorScale, {
      saturate: true,
    });
    return Math.max(scale, amax > 0 ? 1 : 0);
  });
  const codes = encodeQuotients(numbers, blocks, totalScales(scales, tensorScale), float4e2m1fn, {
    saturate: true,
    ...encoding,
  });
  return { codes, scales, tensorScale, columns: blocks.columns };
}

/**
 * The numbers of NVFP4 blocks: the exact product of code, block scale and tensor scale, rounded once to float32, in `out` or a
 * new array.
 * @throws RangeError if `out` is shorter or the scales are not one a block.
 */
export function decodeNvfp4(nvfp4: Nvfp4Array, out?: Float32Array): Float32Array {
  const { codes, scales, tensorScale, columns } = nvfp4;
  const blocks = blocksOf("decodeNvfp4", codes.length, columns, nvfp4BlockSize);
  if (scales.length !== blocks.count) {
    throw new RangeError(
      `decodeNvfp4: ${blocks.count} blocks need as many scales, not ${scales.length}`,
    );
  }
  const values = decodeArray(codes, float4e2m1fn, out);
  multiplyBlocks(values, blocks, totalScales(scales, tensorScale));
  return values;
}

/** Exact: 4 bits of an e4m3 scale times 24 of a float32. */
const totalScales = (scales: Uint8Array, tensorScale: number): Float64Array =>
  Float64Array.from(scales, (code) => float8e4m3fn.decode(code) * tensorScale);
