import { DTypeError } from "@halfstep/autocast";
import { isInteger } from "@halfstep/formats/dtypes";
import type { Tensor } from "../tensor/tensor.js";
import { reshape } from "./shape.js";

/**
 * Labels or indices as kernels take them: uint32, in a shape of as many. Int32 ones keep their bits, so that a negative one is out of range.
 * @throws DTypeError for floats
 */
export function indexBits(
  op: string,
  what: "labels" | "indices",
  index: Tensor,
  shape: readonly number[] = index.shape,
): Tensor {
  const { dtype } = index;
  if (!isInteger(dtype))
    throw new DTypeError(
      `${op}: ${what} are ${dtype}; make them from a Uint32Array, or from an Int32Array where some are negative`,
    );
  const shaped = shape.join() === index.shape.join() ? index : reshape(index, shape);
  return dtype === "uint32" ? shaped : index.runtime.recorder.viewOf(shaped, shape, "uint32");
}
