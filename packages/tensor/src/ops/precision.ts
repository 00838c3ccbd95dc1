import { withoutAutocast } from "@halfstep/autocast";
import type { DType } from "@halfstep/device";
import { isFloat8 } from "@halfstep/formats/dtypes";
import { castTo } from "../dispatch/cast.js";
import type { Tensor } from "../tensor/tensor.js";
import { floating } from "./floating.js";

/**
 * Runs `f` on x in float32 and casts the result to the dtype of x (unless that is a storage format): several ops round
 * once.
 */
export function inFloat32(x: Tensor, f: (x: Tensor) => Tensor): Tensor {
  const { dtype } = floating("this op", x);
  return castTo(f(castTo(x, "float32")), isFloat8(dtype) ? "float32" : dtype);
}

/**
 * The `dtype` argument of sums, norms and products, as in torch: x is cast to it before the op, and autocast is ignored.
 */
export const inDType = (x: Tensor, dtype: DType | undefined, f: (x: Tensor) => Tensor): Tensor =>
  dtype === undefined ? f(x) : withoutAutocast(() => f(castTo(x, dtype)));
