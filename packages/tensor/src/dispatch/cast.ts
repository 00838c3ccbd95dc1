import type { DType } from "@halfstep/device";
import { isFloating, isHalf } from "@halfstep/formats/dtypes";
import {
  type Expression,
  elementwise,
  fromInteger,
  identity,
  toInt32,
  toUint32,
} from "@halfstep/kernels";
import { isGradEnabled } from "../autograd/grad-mode.js";
import type { BackwardContext } from "../autograd/grad-node.js";
import { type DifferentiableOp, dependOn } from "../autograd/grad-node.js";
import { noteOp } from "../record/op-notes.js";
import type { Tensor } from "../tensor/tensor.js";
import type { ForwardContext, OpDefinition, TensorSpec } from "./op.js";
import { traceInside } from "./trace.js";

/**
 * The tensor in another dtype; the tensor itself where it already has it. Integers become the nearest float32 (their own number up to
 * 2^24 in magnitude), and from there what a float32 becomes. Floats are truncated to integers, as in torch. Numbers beyond the range of
 * an integer dtype saturate, and NaN becomes 0; torch leaves both undefined. No gradient flows through casts to or from integers. A
 * recording casts the same version to the same dtype only once: this is autocast's weight cache.
 */
export function castTo(tensor: Tensor, dtype: DType): Tensor {
  if (tensor.dtype === dtype) return tensor;
  const { recorder, recording } = tensor.runtime;
  const { casts } = recording;
  const needsGrad = tensor.requiresGrad && isGradEnabled() && isFloating(dtype);
  const way = needsGrad ? "differentiable" : "plain";
  const known = casts.get(tensor, dtype, way);
  if (known && !known.isDisposed) return known;
  const result = recorder.result(tensor.shape, dtype);
  const first = recording.launches.length;
  castOp.forward({
    target: recorder.scratchTarget,
    inputs: [tensor.operand()],
    outputs: [result.operand()],
    attributes: dtype,
  });
  noteOp(recording, first, castOp.name, [tensor], [result]);
  if (needsGrad) dependOn([tensor], [result], castOp as DifferentiableOp, dtype);
  casts.set(tensor, dtype, way, result);
  traceInside(castOp, dtype, tensor, result);
  return result;
}

/**
 * {@link castTo} for operands that only one op reads. Of a parameter it may return the half copy that the optimizer updates, which
 * changes with the parameter.
 */
export function castOperand(tensor: Tensor, dtype: DType): Tensor {
  if (tensor.dtype !== "float32" || !isHalf(dtype)) return castTo(tensor, dtype);
  const { runtime } = tensor;
  const copy = runtime.recorder.halfCopyOf(tensor, dtype);
  if (!copy) return castTo(tensor, dtype);
  const { casts } = runtime.recording;
  const needsGrad = tensor.requiresGrad && isGradEnabled();
  const known = needsGrad ? casts.get(tensor, dtype, "copy") : undefined;
  if (known) return known;
  traceInside(castOp, dtype, tensor, copy);
  if (!needsGrad) return copy;
  dependOn([tensor], [copy], castOp as DifferentiableOp, dtype);
  casts.set(tensor, dtype, "copy", copy);
  return copy;
}

/** Only casts between floats are folded into their neighbours; passes recognise them by their expression. */
function castExpression(from: DType, to: DType): Expression {
  if (to === "int32") return toInt32;
  if (to === "uint32") return toUint32;
  return isFloating(from) ? identity : fromInteger;
}

// Not made by `defineOp`: its ops go through dispatch, and dispatch itself uses this cast.
export const castOp: OpDefinition<DType> & Pick<DifferentiableOp, "savesNothing"> = {
  name: "cast",
  // A recording's graphs share their casts.
  savesNothing: true,
  castPolicy: "none",
  shape([x], dtype) {
    return [{ shape: (x as TensorSpec).shape, dtype }];
  },
  forward({ target, inputs, outputs, attributes: dtype }: ForwardContext<DType>) {
    const [x] = inputs as [ForwardContext<DType>["inputs"][number]];
    target.launch(elementwise(castExpression(x.dtype, dtype), [x], outputs[0] as typeof x));
  },
  backward({ inputs, gradients }: BackwardContext<DType>) {
    const [x] = inputs as [Tensor];
    const [gradient] = gradients as [Tensor];
    return [castTo(gradient, x.dtype)];
  },
};
