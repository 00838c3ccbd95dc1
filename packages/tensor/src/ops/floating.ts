import { DTypeError } from "@halfstep/autocast";
import type { TensorSpec } from "../dispatch/op.js";
import { isFloating } from "../dtypes.js";

/** The operand of an op that takes no integers. */
export function floating(op: string, spec: TensorSpec): TensorSpec {
  if (!isFloating(spec.dtype))
    throw new DTypeError(
      `${op} needs a floating tensor, not ${spec.dtype}: cast it with to("float32")`,
    );
  return spec;
}
