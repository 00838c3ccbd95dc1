import { withoutAutocast } from "@halfstep/autocast";
import type { DType } from "@halfstep/device";
import { isFloat8 } from "@halfstep/formats/dtypes";
import { castTo } from "../dispatch/cast.js";
import type { Tensor } from "../tensor/tensor.js";

/**
 * Runs `f` on x in float32 and casts the result to the dtype of x (unless that is a storage format): several ops round
 * once.
 */
export const inFloat32 = (x: Tensor, f: (x: Tensor) => Tensor): Tensor =>
  castTo(f(castTo(x, "float32")), isFloat8(x.dtype) ? "float32" : x.dtype);

/**
 * The `dtype` argument of sums, norms and products, as in torch: x is cast to it before the op, and autocast is ignored.
 */
export const inDType = (x: Tensor, dtype: DType | undefined, f: (x: Tensor) => Tensor): Tensor =>
  dtype === undefined ? f(x) : withoutAutocast(() => f(castTo(x, dtype)));
