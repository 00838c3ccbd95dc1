import type { Binding, DType, LaunchTarget } from "@halfstep/device";
import { bytesFor } from "@halfstep/formats/dtypes";

/** Memory that passes results from one launch to the next, which the target takes back where it has `scratch`. */
export function scratch<B>(
  target: LaunchTarget<B>,
  length: number,
  dtype: DType = "float32",
): Binding<B> {
  const bytes = bytesFor(dtype, Math.max(1, length));
  const buffer = target.scratch?.(bytes) ?? target.allocate(bytes);
  return { buffer, offset: 0, length, dtype };
}
