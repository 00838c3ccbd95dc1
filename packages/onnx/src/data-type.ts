import type { DType } from "@halfstep/device";
import { isInteger } from "@halfstep/formats/dtypes";

/** The types of elements, by ONNX's numbers. */
export const dataType = {
  FLOAT: 1,
  UINT8: 2,
  INT8: 3,
  UINT16: 4,
  INT16: 5,
  INT32: 6,
  INT64: 7,
  BOOL: 9,
  FLOAT16: 10,
  DOUBLE: 11,
  UINT32: 12,
  UINT64: 13,
  BFLOAT16: 16,
} as const;

/** A number of {@link dataType}. */
export type DataType = (typeof dataType)[keyof typeof dataType];

const names = new Map(Object.entries(dataType).map(([name, number]) => [number as number, name]));

/** The name of a type of elements; the number where this package does not know it. */
export const nameOfType = (type: number): string => names.get(type) ?? `type ${type}`;

/** Whether this package knows the type. */
export const isDataType = (type: number): type is DataType => names.has(type);

/**
 * How a dtype is written. bfloat16 becomes float32, because runtimes lack operators for it. Integers become int64, which operators take as
 * indices and shapes.
 */
export function typeOf(dtype: DType): DataType {
  if (isInteger(dtype)) return dataType.INT64;
  return dtype === "float16" ? dataType.FLOAT16 : dataType.FLOAT;
}
