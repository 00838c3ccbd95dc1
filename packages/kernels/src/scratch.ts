import type { Binding, DType, LaunchTarget } from "@halfstep/device";
import { bytesFor } from "@halfstep/formats/dtypes";

/** Allocates memory that passes results from one launch to the next. */
export function scratch<B>(
  target: LaunchTarget<B>,
  length: number,
  dtype: DType = "float32",
): Binding<B> {
  const buffer = target.allocate(bytesFor(dtype, Math.max(1, length)));
  return { buffer, offset: 0, length, dtype };
}
