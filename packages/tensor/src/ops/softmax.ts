import * as kernels from "@halfstep/kernels";
import { ShapeError } from "../errors.js";
import { defineOp, type Op, type Operand, type TensorSpec } from "../op.js";
import type { Tensor } from "../tensor.js";

const rowsOf = (shape: readonly number[]): { rows: number; columns: number } => {
  const columns = shape.at(-1) ?? 1;
  return { rows: shape.slice(0, -1).reduce((a, b) => a * b, 1), columns };
};

function shapeOf(op: string, spec: TensorSpec): TensorSpec {
  if (spec.shape.length === 0) throw new ShapeError(`${op} needs at least one dimension`);
  return spec;
}

/** Probabilities over the last axis. */
export const softmax: Op<null> = defineOp<null>({
  name: "softmax",
  castPolicy: "float32Output",
  shape: ([x]) => [shapeOf("softmax", x as TensorSpec)],
  forward({ target, inputs, outputs }) {
    const input = inputs[0] as Operand;
    target.launch(kernels.softmax({ input, out: outputs[0] as Operand }, rowsOf(input.shape)));
  },
  backward({ outputs, gradients }) {
    const y = outputs[0] as Tensor;
    const g = gradients[0] as Tensor;
    return [y.mul(g.sub(g.mul(y).sum(-1, { keepDimensions: true })))];
  },
});

/** Logarithms of the probabilities over the last axis. */
export const logSoftmax: Op<null> = defineOp<null>({
  name: "logSoftmax",
  castPolicy: "float32Output",
  shape: ([x]) => [shapeOf("logSoftmax", x as TensorSpec)],
  forward({ target, inputs, outputs }) {
    const input = inputs[0] as Operand;
    target.launch(kernels.logSoftmax({ input, out: outputs[0] as Operand }, rowsOf(input.shape)));
  },
  backward({ outputs, gradients }) {
    const y = outputs[0] as Tensor;
    const g = gradients[0] as Tensor;
    return [g.sub(y.exp().mul(g.sum(-1, { keepDimensions: true })))];
  },
});

/** Index of the largest element along the last axis, as uint32; the first of equals. */
export const argmax: Op<null> = defineOp<null>({
  name: "argmax",
  castPolicy: "none",
  shape([x]) {
    const { shape } = shapeOf("argmax", x as TensorSpec);
    return [{ shape: shape.slice(0, -1), dtype: "uint32" }];
  },
  forward({ target, inputs, outputs }) {
    const input = inputs[0] as Operand;
    target.launch(kernels.argmax({ input, out: outputs[0] as Operand }, rowsOf(input.shape)));
  },
  backward: "none",
});
