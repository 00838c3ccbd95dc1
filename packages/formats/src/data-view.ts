import { bfloat16 } from "./bfloat16.js";
import { float16 } from "./float16.js";
import type { FloatFormat } from "./format.js";

/**
 * The float16 at a byte offset, as `DataView.prototype.getFloat16` reads it: any offset, big-endian unless told otherwise.
 * @throws RangeError if it does not lie in the view, TypeError if the view's buffer is detached.
 */
export function getFloat16(view: DataView, byteOffset: number, littleEndian?: boolean): number {
  return float16.decode(view.getUint16(byteOffset, littleEndian));
}

/**
 * Stores the float16 nearest to `value`, as `DataView.prototype.setFloat16` does; NaN as 0x7e00.
 * @throws RangeError if it does not lie in the view, TypeError if the view's buffer is detached.
 */
export function setFloat16(
  view: DataView,
  byteOffset: number,
  value: number,
  littleEndian?: boolean,
): void {
  view.setUint16(byteOffset, encoded(float16, value), littleEndian);
}

/** `getFloat16` for bfloat16. */
export function getBFloat16(view: DataView, byteOffset: number, littleEndian?: boolean): number {
  return bfloat16.decode(view.getUint16(byteOffset, littleEndian));
}

/** `setFloat16` for bfloat16; NaN is stored as 0x7fc0. */
export function setBFloat16(
  view: DataView,
  byteOffset: number,
  value: number,
  littleEndian?: boolean,
): void {
  view.setUint16(byteOffset, encoded(bfloat16, value), littleEndian);
}

/**
 * The code; for a value that is not a number yet, an object that `setUint16` converts, so that the offset is checked
 * first, as in the standard.
 */
function encoded(format: FloatFormat, value: number): number {
  if (typeof value === "number") return format.encode(value);
  return { valueOf: () => format.encode(+value) } as unknown as number;
}
