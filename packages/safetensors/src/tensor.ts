import { dtypes, type SafetensorsData, type SafetensorsDtype } from "./dtype.js";
import { SafetensorsError, type SafetensorsLocation } from "./error.js";

/** A tensor in memory: `data` has its elements in row-major order, in the array that goes with `dtype`. */
export type SafetensorsTensor = {
  readonly [D in SafetensorsDtype]: {
    readonly dtype: D;
    readonly shape: readonly number[];
    readonly data: SafetensorsData[D];
  };
}[SafetensorsDtype];

/** What the header says of a tensor. */
export interface SafetensorsInfo {
  readonly dtype: SafetensorsDtype;
  readonly shape: readonly number[];
  /** Where its data starts in the file. */
  readonly byteOffset: number;
  readonly byteLength: number;
}

/** numpy's limit. Without one, a header of 100 MB could be a single shape of 50 million ones. */
export const maxRank = 64;

/**
 * The bytes that a tensor takes.
 * @throws SafetensorsError when they are no whole number, or the product of the shape is above 2^53 − 1 bits
 */
export function byteLengthOf(
  dtype: SafetensorsDtype,
  shape: readonly number[],
  at: SafetensorsLocation,
): number {
  const { bits } = dtypes[dtype];
  // The dimensions are multiplied in order, as the reference does it: an overflow before a 0 is an overflow.
  let total = bits;
  for (const size of shape) {
    total *= size;
    if (total > Number.MAX_SAFE_INTEGER)
      throw new SafetensorsError("shape", `${dtype} [${shape}] overflows 2^53 bits`, at);
  }
  if (total % 8 !== 0)
    throw new SafetensorsError(
      "shape",
      `${dtype} [${shape}] takes ${total} bits, which are no whole bytes`,
      at,
    );
  return total / 8;
}

/** A tensor over bytes of a file: a view where their alignment allows it, else a copy. */
export function tensorOver(
  { dtype, shape, byteLength }: SafetensorsInfo,
  buffer: ArrayBufferLike,
  byteOffset: number,
): SafetensorsTensor {
  const { array } = dtypes[dtype];
  const length = byteLength / array.BYTES_PER_ELEMENT;
  const data =
    byteOffset % array.BYTES_PER_ELEMENT === 0
      ? new array(buffer, byteOffset, length)
      : new array(buffer.slice(byteOffset, byteOffset + byteLength), 0, length);
  return { dtype, shape, data } as SafetensorsTensor;
}

/** Zeros to be filled. @throws SafetensorsError where the engine has no array of that length */
export function allocate(byteLength: number, at: SafetensorsLocation): Uint8Array<ArrayBuffer> {
  try {
    return new Uint8Array(byteLength);
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause;
    throw new SafetensorsError("too-large", `${byteLength} bytes fit no array here`, at);
  }
}
