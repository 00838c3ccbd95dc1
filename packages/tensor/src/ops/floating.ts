import { DTypeError } from "@halfstep/autocast";
import { isFloating } from "@halfstep/formats/dtypes";
import type { TensorSpec } from "../dispatch/op.js";

/** The operand of an op that takes no integers. */
export function floating(op: string, spec: TensorSpec): TensorSpec {
  if (!isFloating(spec.dtype))
    throw new DTypeError(
      `${op} needs a floating tensor, not ${spec.dtype}: cast it with to("float32")`,
    );
  return spec;
}
