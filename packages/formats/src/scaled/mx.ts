import { encodeArrayOptions } from "../arrays/arguments.js";
import { decodeArray, type EncodeArrayOptions, type Numbers } from "../arrays.js";
import { exponentOf, powerOfTwo } from "../exponent.js";
import { checkFormat, type FloatFormat } from "../format.js";
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

/** Elements that share an e8m0 scale. */
export const mxBlockSize: number = 32;

/** The element formats of OCP MX v1.0. */
export type MxElement =
  | "float8e4m3fn"
  | "float8e5m2"
  | "float6e3m2fn"
  | "float6e2m3fn"
  | "float4e2m1fn";

/**
 * How the exponent of a block's scale is computed from its largest magnitude, amax. emax is the exponent of the element
 * format's largest number: 8 for e4m3, 15 for e5m2, 4 for e3m2, 2 for e2m3 and e2m1.
 *
 * - `"floor"`: ⌊log₂ amax⌋ − emax, the rule of OCP MX v1.0 §6.3; the largest elements may saturate;
 * - `"ceil"`: ⌈log₂ amax⌉ − emax;
 * - `"even"`: as floor, after amax is rounded (half up) to the element's mantissa bits, so that numbers that round up to the
 *   next power of two get room;
 * - `"rceil"`: ⌈log₂(amax / max)⌉, the least scale at which nothing saturates (cuBLAS, `cvt.rp.ue8m0x2`).
 *
 * The names are torchao's, but two of its special cases are not followed. For amax from (2 − 2^(−mantissaBits − 1)) · 2¹²⁷
 * on, its even rule overflows to a NaN scale. Its rceil multiplies by a rounded reciprocal of max, which for amax = max · 2^k
 * can return a scale twice as large.
 */
export type MxRule = "floor" | "ceil" | "even" | "rceil";

/** Blocks of 32 elements with an e8m0 scale each: number = decoded code · 2^(scale − 127). */
export interface MxArray {
  readonly format: FloatFormat<Uint8Array>;
  /** One element a byte; `packCodes` makes them dense. */
  readonly codes: Uint8Array;
  /** e8m0 codes, one a block, row after row. 255 is NaN: all numbers of that block are. */
  readonly scales: Uint8Array;
  /** Elements of a row. */
  readonly columns: number;
}

/** Options of encoding in an MX format. */
export interface MxOptions extends EncodeArrayOptions {
  /** Default `"floor"`. */
  readonly rule?: MxRule;
  /** Elements of a row; a row begins a block. Default: one row. */
  readonly columns?: number;
}

/**
 * The e8m0 code of a block's scale: its exponent, held within −127 and 127, plus 127. Code 0 for amax 0, and 255 (NaN) for
 * amax NaN or infinite.
 * @throws TypeError if the rule is unknown.
 */
export function mxScale(
  amax: number,
  format: FloatFormat<Uint8Array>,
  rule: MxRule = "floor",
): number {
  if (!(amax < Infinity)) return 255;
  return scaleExponent(amax, format, rule) + 127;
}

function scaleExponent(amax: number, format: FloatFormat<Uint8Array>, rule: MxRule): number {
  const { mantissaBits, finfo } = format;
  const largest = powerOfTwo(exponentOf(finfo.max));
  switch (rule) {
    case "ceil":
      return ceilExponent(amax, largest, -127, 127);
    case "rceil":
      return ceilExponent(amax, finfo.max, -127, 127);
    case "floor":
    case "even": {
      const exponent = exponentOf(amax);
      const carries =
        rule === "even" && amax / powerOfTwo(exponent) >= 2 - 2 ** (-mantissaBits - 1);
      return Math.min(Math.max(exponent + (carries ? 1 : 0) - exponentOf(finfo.max), -127), 127);
    }
    default:
      throw new TypeError(`unknown MX rule "${String(rule)}": use floor, ceil, even or rceil`);
  }
}

/**
 * Encodes numbers as OCP MX blocks of 32 (the Microscaling Formats specification v1.0). A row whose length is not a multiple
 * of 32 ends in a shorter block with a scale of its own and no padding.
 *
 * Elements beyond the format saturate. A block with a NaN or an infinity has scale NaN and zero codes. The specification
 * leaves this case open; torchao does the same, for element formats with and without NaN.
 * @throws RangeError if `columns` does not divide the elements; TypeError if the format is no element of MX.
 */
export function encodeMx(
  values: Numbers,
  format: FloatFormat<Uint8Array>,
  options: MxOptions = {},
): MxArray {
  requireKnown("encodeMx", options, ["rule", "columns", ...encodeArrayOptions]);
  const { rule = "floor", columns, ...encoding } = options;
  checkElement(format);
  const numbers = numbersOf("encodeMx", values);
  const blocks = blocksOf("encodeMx", numbers.length, columns, mxBlockSize);
  const scales = Uint8Array.from({ length: blocks.count }, (_, block) => {
    const start = blockStart(blocks, block);
    const { amax, allFinite } = amaxOf(numbers, start, blockStart(blocks, block + 1));
    return mxScale(allFinite ? amax : Number.NaN, format, rule);
  });
  const codes = encodeQuotients(numbers, blocks, scaleValues(scales), format, {
    saturate: true,
    ...encoding,
  });
  return { format, codes, scales, columns: blocks.columns };
}

/**
 * The numbers of MX blocks, rounded once to float32 (only its overflow and subnormals can round), in `out` or a new array.
 * @throws RangeError if `out` is shorter or the scales are not one a block.
 */
export function decodeMx(mx: MxArray, out?: Float32Array): Float32Array {
  const { format, codes, scales, columns } = mx;
  const blocks = blocksOf("decodeMx", codes.length, columns, mxBlockSize);
  if (scales.length !== blocks.count) {
    throw new RangeError(
      `decodeMx: ${blocks.count} blocks need as many scales, not ${scales.length}`,
    );
  }
  const values = decodeArray(codes, format, out);
  multiplyBlocks(values, blocks, scaleValues(scales));
  return values;
}

const scaleValues = (scales: Uint8Array): Float64Array =>
  Float64Array.from(scales, (code) => (code === 255 ? Number.NaN : powerOfTwo(code - 127)));

const elements: readonly string[] = [
  "float8e4m3fn",
  "float8e5m2",
  "float6e3m2fn",
  "float6e2m3fn",
  "float4e2m1fn",
] satisfies MxElement[];

function checkElement(format: FloatFormat): void {
  checkFormat("encodeMx", format);
  if (!elements.includes(format.name)) {
    throw new TypeError(`${format.name} is no MX element: use ${elements.join(", ")}`);
  }
}
