import { bfloat16, float16 } from "@halfstep/formats";
import { type DataType, dataType } from "../data-type.js";

/** The first of what a typed array makes of a number: whole, and of too large ones the lowest bits. */
const by =
  (make: (value: number) => ArrayLike<number>) =>
  (value: number): number =>
    make(value)[0] as number;

const stored: Readonly<Record<DataType, (value: number) => number>> = {
  [dataType.FLOAT]: Math.fround,
  [dataType.DOUBLE]: (value) => value,
  [dataType.FLOAT16]: (value) => float16.decode(float16.encode(value)),
  [dataType.BFLOAT16]: (value) => bfloat16.decode(bfloat16.encode(value)),
  [dataType.BOOL]: (value) => Number(value !== 0),
  [dataType.INT8]: by((value) => Int8Array.of(value)),
  [dataType.UINT8]: by((value) => Uint8Array.of(value)),
  [dataType.INT16]: by((value) => Int16Array.of(value)),
  [dataType.UINT16]: by((value) => Uint16Array.of(value)),
  [dataType.INT32]: by((value) => Int32Array.of(value)),
  [dataType.UINT32]: by((value) => Uint32Array.of(value)),
  [dataType.INT64]: Math.trunc,
  [dataType.UINT64]: Math.trunc,
};

/**
 * The number of a type that a result becomes, as runtimes compute it: each operator rounds to float32, and a count of 10 × 0.7 is 7 and
 * not 6.999….
 */
export const storedAs = (type: DataType): ((value: number) => number) => stored[type];
