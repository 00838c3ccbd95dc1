import { type Binding, bytesPerElement, type DType, type LaunchTarget } from "@halfstep/device";

/** Allocates memory that passes results from one launch to the next. */
export function scratch<B>(
  target: LaunchTarget<B>,
  length: number,
  dtype: DType = "float32",
): Binding<B> {
  const buffer = target.allocate(Math.max(1, length) * bytesPerElement(dtype));
  return { buffer, offset: 0, length, dtype };
}
