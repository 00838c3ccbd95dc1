import type { DType } from "@halfstep/device";
import * as kernels from "@halfstep/kernels";
import { checked } from "../arguments/arguments.js";
import * as kinds from "../arguments/kinds.js";
import { isGradEnabled } from "../autograd/grad-mode.js";
import { defineOp, type Op, type Operand, type TensorSpec } from "../dispatch/op.js";
import { ShapeError } from "../errors.js";
import type { Tensor } from "../tensor/tensor.js";
import { floating } from "./floating.js";
import { inDType } from "./precision.js";
import { sum } from "./sums.js";
import { axisOf } from "./windows.js";

const rowsOf = (shape: readonly number[]): { rows: number; columns: number } => {
  const columns = shape.at(-1) ?? 1;
  return { rows: shape.slice(0, -1).reduce((a, b) => a * b, 1), columns };
};

function withAxes(op: string, spec: TensorSpec): TensorSpec {
  if (spec.shape.length === 0) throw new ShapeError(`${op} needs at least one dimension`);
  return spec;
}

const shapeOf = (op: string, spec: TensorSpec): TensorSpec => floating(op, withAxes(op, spec));

/** An op over the last axis. Its gradient is a kernel too, unless it is to be differentiated again. */
function rowsOp(
  name: "softmax" | "logSoftmax",
  forward: typeof kernels.softmax,
  backward: typeof kernels.softmaxBackward,
  composed: (y: Tensor, g: Tensor) => Tensor,
): Op<null> {
  const fused = defineOp<null>({
    name: `${name}Backward`,
    castPolicy: "float32Output",
    shape: ([y]) => [y as TensorSpec],
    forward({ target, inputs, outputs }) {
      const [out, outGradient] = inputs as [Operand, Operand];
      const inputGradient = outputs[0] as Operand;
      target.launch(backward({ out, outGradient, inputGradient }, rowsOf(out.shape)));
    },
    backward: "none",
  });
  return defineOp<null>({
    name,
    castPolicy: "float32Output",
    shape: ([x]) => [shapeOf(name, x as TensorSpec)],
    forward({ target, inputs, outputs }) {
      const input = inputs[0] as Operand;
      target.launch(forward({ input, out: outputs[0] as Operand }, rowsOf(input.shape)));
    },
    backward({ outputs, gradients }) {
      const [y, g] = [outputs[0], gradients[0]] as [Tensor, Tensor];
      return [isGradEnabled() ? composed(y, g) : fused.apply([y, g], null)];
    },
  });
}

export const softmaxOp: Op<null> = rowsOp(
  "softmax",
  kernels.softmax,
  kernels.softmaxBackward,
  (y, g) => y.mul(g.sub(sum(g.mul(y), -1, { keepDimensions: true }))),
);

export const logSoftmaxOp: Op<null> = rowsOp(
  "logSoftmax",
  kernels.logSoftmax,
  kernels.logSoftmaxBackward,
  (y, g) => g.sub(y.exp().mul(sum(g, -1, { keepDimensions: true }))),
);

/** Options of {@link softmax}. */
export interface SoftmaxOptions {
  /** The dtype to compute and return in. Default: float32 under autocast, else that of the input. */
  readonly dtype?: DType;
}

/** Applies an op over the last axis to another axis. A `dtype` from the caller takes precedence over autocast. */
function along(op: Op<null>, x: Tensor, axis: number, options: SoftmaxOptions): Tensor {
  // A scalar is a line of one element, as in torch.
  if (x.rank === 0) return along(op, x.reshape([1]), axis, options).reshape([]);
  const { dtype } = options;
  const position = axisOf(op.name, x, axis);
  if (dtype) return inDType(x, dtype, (typed) => along(op, typed, axis, {}));
  const last = x.rank - 1;
  if (position >= last) return op.apply([x], null);
  const order = x.shape.map((_, d) => (d === position ? last : d === last ? position : d));
  return op.apply([x.permute(order)], null).permute(order);
}

type Softmax = (x: Tensor, axis?: number, options?: SoftmaxOptions) => Tensor;

const softmaxOf = (
  name: string,
  body: (x: Tensor, axis: number, options: SoftmaxOptions) => Tensor,
): Softmax =>
  checked(
    name,
    {
      x: kinds.tensor,
      axis: kinds.optional(kinds.integer),
      options: kinds.optionals({ dtype: kinds.dtype }),
    },
    (x: Tensor, axis = -1, options: SoftmaxOptions = {}): Tensor => body(x, axis, options),
  );

/** Probabilities over an axis, the last by default, as torch.softmax: exp(x) / Σ exp(x). */
export const softmax: Softmax = softmaxOf("softmax", (x, axis, options) =>
  along(softmaxOp, x, axis, options),
);

/** Logarithms of the probabilities over an axis, the last by default, as torch.log_softmax. */
export const logSoftmax: Softmax = softmaxOf("logSoftmax", (x, axis, options) =>
  along(logSoftmaxOp, x, axis, options),
);

/** Softmax of −x, as torch.nn.functional.softmin. */
export const softmin: Softmax = softmaxOf("softmin", (x, axis, options) =>
  softmax(x.neg(), axis, options),
);

interface Search {
  readonly largest: boolean;
}

const argmaxOp: Op<Search> = defineOp<Search>({
  name: "argmax",
  castPolicy: "none",
  shape([x]) {
    const { shape } = withAxes("argmax", x as TensorSpec);
    return [{ shape: shape.slice(0, -1), dtype: "uint32" }];
  },
  forward({ target, inputs, outputs, attributes }) {
    const input = inputs[0] as Operand;
    const rows = { ...rowsOf(input.shape), ...attributes };
    target.launch(kernels.argmax({ input, out: outputs[0] as Operand }, rows));
  },
  backward: "none",
});

/** The index of the largest (or smallest) element of each row along the last axis, which is removed. */
export const argmaxOfRows = (x: Tensor, largest = true): Tensor => argmaxOp.apply([x], { largest });

type Place = (x: Tensor, axis?: number) => Tensor;

const placeOf = (name: string, largest: boolean): Place =>
  checked(
    name,
    { x: kinds.tensor, axis: kinds.optional(kinds.integer) },
    (x: Tensor, axis?: number): Tensor => {
      if (axis === undefined || x.rank === 0) {
        if (axis !== undefined) axisOf(name, { shape: [1] }, axis);
        return argmaxOfRows(x.reshape([x.size]), largest);
      }
      const d = axisOf(name, x, axis);
      const last = x.shape.map((_, other) => other).filter((other) => other !== d);
      return argmaxOfRows(d === x.rank - 1 ? x : x.detach().permute([...last, d]), largest);
    },
  );

/**
 * The index of the largest element along an axis, as uint32; ties go to the first, and NaN is the largest. The axis is removed. Without
 * an axis it is the index among all elements in row-major order, as in torch.
 */
export const argmax: Place = placeOf("argmax", true);

/** The index of the smallest element along an axis, or among all elements: as {@link argmax}. NaN wins here, too, as in torch. */
export const argmin: Place = placeOf("argmin", false);
