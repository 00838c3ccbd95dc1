// The record of each dtype: its bits, its format, its array on the host, and conversions between numbers and bytes. The WGSL of dtypes is
// keyed by the same names in `@halfstep/kernels`.

import { bfloat16 } from "./bfloat16.js";
import {
  type DecodedElements,
  decodeAs,
  type ElementBytes,
  type ElementMemory,
  encodeAs,
  type FloatRecord,
  floatRecord,
  type IntegerRecord,
  roundAs,
  storeAs,
  toIntegerWithin,
} from "./dtypes/record.js";
import { float8e4m3fn } from "./float8e4m3fn.js";
import { float8e5m2 } from "./float8e5m2.js";
import { float16 } from "./float16.js";
import { float32 } from "./float32.js";

export type {
  DecodedElements,
  ElementBytes,
  ElementMemory,
  FloatRecord,
  IntegerRecord,
} from "./dtypes/record.js";

/** The 16-bit floating formats. */
export type HalfDType = "float16" | "bfloat16";

/**
 * The 8-bit floating formats of training: of 4 exponent bits and no infinity, up to 448, and of 5. Stores round to nearest even and
 * saturate: what is too large becomes the largest number. Both 16-bit formats represent all their numbers exactly.
 */
export type Float8DType = "float8e4m3fn" | "float8e5m2";

/** Floats narrower than 32 bits, which are stored as codes. */
export type NarrowDType = HalfDType | Float8DType;

/** Dtypes of floating-point numbers. */
export type FloatDType = "float32" | NarrowDType;

/** Dtypes of integers. */
export type IntegerDType = "int32" | "uint32";

/** The storage of a tensor's elements in memory. Arithmetic is float32 for every storage. */
export type DType = FloatDType | IntegerDType;

/** The record of each dtype. */
export const dtypes: { readonly [D in FloatDType]: FloatRecord } & {
  readonly [D in IntegerDType]: IntegerRecord;
} = {
  float32: /* @__PURE__ */ floatRecord(float32),
  float16: /* @__PURE__ */ floatRecord(float16),
  bfloat16: /* @__PURE__ */ floatRecord(bfloat16),
  float8e4m3fn: /* @__PURE__ */ floatRecord(float8e4m3fn),
  float8e5m2: /* @__PURE__ */ floatRecord(float8e5m2),
  int32: { kind: "int", bits: 32, Elements: Int32Array, range: [-(2 ** 31), 2 ** 31 - 1] },
  uint32: { kind: "uint", bits: 32, Elements: Uint32Array, range: [0, 2 ** 32 - 1] },
};

/** The record of a dtype. Callers in JavaScript may name others, and arguments may have changed places. */
function recordOf<D extends DType>(dtype: D): (typeof dtypes)[D] {
  if (Object.hasOwn(dtypes, dtype)) return dtypes[dtype];
  throw new TypeError(`unknown dtype "${String(dtype)}": use ${Object.keys(dtypes).join(", ")}`);
}

/** Every dtype, floats first. */
export const allDTypes: readonly DType[] = /* @__PURE__ */ Object.keys(dtypes) as DType[];

/** Whether a name is that of a dtype. */
export const isDType = (name: string): name is DType => Object.hasOwn(dtypes, name);

/** Whether a dtype is one of floating-point numbers. */
export const isFloating = (dtype: DType): dtype is FloatDType => dtypes[dtype].kind === "float";

/** Every dtype of floating-point numbers, the widest first. */
export const floatingDTypes: readonly FloatDType[] = /* @__PURE__ */ allDTypes.filter(isFloating);

/** Whether a dtype is one of integers. */
export const isInteger = (dtype: DType): dtype is IntegerDType => !isFloating(dtype);

/** Whether elements are codes of a format narrower than float32. */
export const isNarrow = (dtype: DType): dtype is NarrowDType => dtypes[dtype].bits < 32;

/** Whether a dtype has 16 bits. */
export const isHalf = (dtype: DType): dtype is HalfDType => dtypes[dtype].bits === 16;

/** Whether a dtype has 8 bits, which are for storage alone. */
export const isFloat8 = (dtype: DType): dtype is Float8DType => dtypes[dtype].bits === 8;

/** The bytes that `length` elements fill: two elements of 4 bits share one. */
export const bytesFor = (dtype: DType, length: number): number =>
  Math.ceil((length * recordOf(dtype).bits) / 8);

/** The number of elements that fit in `bytes`. */
export const elementsIn = (dtype: DType, bytes: number): number =>
  Math.floor((bytes * 8) / recordOf(dtype).bits);

/** Converts a number to an integer: truncated, saturated, and 0 for NaN. */
export const toInteger = (dtype: IntegerDType, x: number): number =>
  toIntegerWithin(recordOf(dtype).range, x);

/**
 * Numbers as a dtype stores them. Floats are rounded to nearest even, 8-bit floats saturate besides. Integers are truncated and saturate,
 * and NaN becomes 0.
 *
 * @returns an array of exactly the bytes of the elements: `values` itself if it is the typed array of a 32-bit dtype.
 */
export const encodeElements = (values: ArrayLike<number>, dtype: DType): ElementBytes =>
  encodeAs(recordOf(dtype), values);

/**
 * Decodes `length` elements at a byte offset of a buffer, or of a view, such as a Uint8Array of bytes.
 *
 * @returns for dtypes of 32 bits a view of the buffer, or a copy where they start at no multiple of 4 bytes; for others a new array.
 * @throws TypeError for what is neither a buffer nor a view of one. RangeError where the elements do not lie in it.
 */
export const decodeElements = (
  memory: ElementMemory,
  dtype: DType,
  length: number,
  byteOffset = 0,
): DecodedElements => decodeAs(recordOf(dtype), memory, length, byteOffset);

/**
 * Writes numbers at a byte offset of a buffer, or of a view, such as a Uint8Array of bytes, as {@link encodeElements} encodes them.
 *
 * @throws TypeError for what is neither a buffer nor a view of one. RangeError where the elements do not fit.
 */
export const storeElements = (
  values: ArrayLike<number>,
  dtype: DType,
  memory: ElementMemory,
  byteOffset = 0,
): void => storeAs(recordOf(dtype), values, memory, byteOffset);

/** Rounds float32 numbers in place, to those that {@link storeElements} leaves. */
export const roundElements = (numbers: Float32Array, dtype: FloatDType): void =>
  roundAs(recordOf(dtype), numbers);
