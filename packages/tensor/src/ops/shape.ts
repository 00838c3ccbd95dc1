import { isFloating } from "@halfstep/formats/dtypes";
import {
  type CopiedDimension,
  elementwise,
  identity,
  permute as permuteLaunch,
  stridedCopy,
} from "@halfstep/kernels";
import { checked } from "../arguments/arguments.js";
import * as kinds from "../arguments/kinds.js";
import { isGradEnabled } from "../autograd/grad-mode.js";
import { type DifferentiableOp, dependOn } from "../autograd/grad-node.js";
import {
  type CallableOp,
  callable,
  defineOp,
  type Op,
  type Operand,
  type TensorSpec,
} from "../dispatch/op.js";
import { type TracedDefinition, traceInside } from "../dispatch/trace.js";
import { ShapeError } from "../errors.js";
import { sizeOf } from "../shapes.js";
import type { Tensor } from "../tensor/tensor.js";
import { sumTo } from "./sums.js";
import { axisOf } from "./windows.js";

const product = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1);

/** The same elements in another shape, over the same memory. One size may be -1. */
export const reshape: (x: Tensor, shape: readonly number[]) => Tensor = checked(
  "reshape",
  { x: kinds.tensor, shape: kinds.list },
  (x: Tensor, shape: readonly number[]): Tensor => {
    const inferred = shape.includes(-1) ? inferredShape(x, shape) : [...shape];
    if (sizeOf(inferred) !== x.size || !inferred.every(Number.isInteger))
      throw new ShapeError(
        `reshape: [${x.shape}] has ${x.size} elements, which do not fill [${shape}]`,
      );
    const view = x.runtime.recorder.viewOf(x, inferred);
    traceInside(reshapeNode, inferred, x, view);
    if (x.requiresGrad && isGradEnabled()) dependOn([x], [view], reshapeNode);
    return view;
  },
);

/** Identifies reshapes in traces; they have no launches. */
export const reshapeNode: DifferentiableOp & TracedDefinition = {
  name: "reshape",
  castPolicy: "none",
  savesNothing: true,
  backward: ({ inputs, gradients }) => [
    reshape(gradients[0] as Tensor, (inputs[0] as Tensor).shape),
  ],
};

function inferredShape(x: Tensor, shape: readonly number[]): readonly number[] {
  const known = product(shape.filter((size) => size !== -1));
  return shape.map((size) => (size === -1 ? x.size / known : size));
}

const expandOp: Op<readonly number[]> = defineOp<readonly number[]>({
  name: "expand",
  castPolicy: "none",
  shape([x], shape) {
    const { shape: from, dtype } = x as TensorSpec;
    const lead = shape.length - from.length;
    const isLonger = lead >= 0 && shape.every((size) => size >= 0);
    if (!isLonger || from.some((size, d) => size !== 1 && size !== shape[lead + d]))
      throw new ShapeError(
        `expand: [${from}] does not expand to [${shape}]: only sizes of 1 can be repeated`,
      );
    return [{ shape, dtype }];
  },
  forward({ target, inputs, outputs }) {
    const [input, out] = [inputs[0] as Operand, outputs[0] as Operand];
    // An elementwise launch of floats may be fused with its neighbours; integers are copied bit by bit.
    if (isFloating(input.dtype)) target.launch(elementwise(identity, inputs, out));
    else target.launch(stridedCopy({ input, out }, { dimensions: repeated(input, out) }));
  },
  backward: ({ inputs, gradients }) => [sumTo(gradients[0] as Tensor, (inputs[0] as Tensor).shape)],
});

/** Repeats size-1 dimensions up to a larger shape, and adds leading ones, as a copy. A size of −1 stays as it is. */
export const expand: CallableOp<
  (x: Tensor, shape: readonly number[]) => Tensor,
  readonly number[]
> = callable(
  expandOp,
  { x: kinds.tensor, shape: kinds.integers },
  (x: Tensor, shape: readonly number[]) => {
    const kept = x.rank - shape.length;
    return expandOp.apply(
      [x],
      shape.map((size, d) => (size === -1 ? (x.shape[d + kept] ?? size) : size)),
    );
  },
);

function repeated({ shape }: TensorSpec, out: TensorSpec): readonly CopiedDimension[] {
  const lead = out.shape.length - shape.length;
  return out.shape.map((size, d) => {
    const own = shape[d - lead] ?? 1;
    return { size, stride: own === 1 ? 0 : product(shape.slice(d - lead + 1)) };
  });
}

const permuteOp: Op<readonly number[]> = defineOp<readonly number[]>({
  name: "permute",
  castPolicy: "none",
  shape([x], order) {
    const { shape, dtype } = x as TensorSpec;
    const isOrder = order.length === shape.length && new Set(order).size === order.length;
    if (!isOrder || order.some((d) => !(d in shape)))
      throw new ShapeError(
        `permute: [${order}] is no order of the ${shape.length} dimensions of [${shape}]`,
      );
    return [{ shape: order.map((d) => shape[d] as number), dtype }];
  },
  forward({ target, inputs, outputs, attributes }) {
    const input = inputs[0] as Operand;
    const out = outputs[0] as Operand;
    target.launch(permuteLaunch({ input, out }, { shape: input.shape, order: attributes }));
  },
  backward({ gradients, attributes }) {
    const inverse = attributes.map((_, d) => attributes.indexOf(d));
    return [permute(gradients[0] as Tensor, inverse)];
  },
});

/** The dimensions in another order, as a copy: result dimension d is input dimension order[d]. Negative ones count from the end. */
export const permute: CallableOp<
  (x: Tensor, order: readonly number[]) => Tensor,
  readonly number[]
> = callable(
  permuteOp,
  { x: kinds.tensor, order: kinds.integers },
  (x: Tensor, order: readonly number[]) =>
    permuteOp.apply(
      [x],
      order.map((d) => (d < 0 ? d + x.rank : d)),
    ),
);

/** Exchanges two dimensions; negative ones count from the end. */
export const transpose: (x: Tensor, a: number, b: number) => Tensor = checked(
  "transpose",
  { x: kinds.tensor, a: kinds.integer, b: kinds.integer },
  (x: Tensor, a: number, b: number): Tensor => {
    // A scalar is a line of one element, as in torch.
    const given = x.rank === 0 ? { shape: [1] } : x;
    const [from, to] = [axisOf("transpose", given, a), axisOf("transpose", given, b)];
    if (x.rank === 0) return x;
    const order = x.shape.map((_, d) => d);
    return permute(x, order.with(from, to).with(to, from));
  },
);

/** Inserts a dimension of size 1 before `axis`; −1 inserts it at the end. */
export const unsqueeze: (x: Tensor, axis: number) => Tensor = checked(
  "unsqueeze",
  { x: kinds.tensor, axis: kinds.integer },
  (x: Tensor, axis: number): Tensor => {
    const d = axis < 0 ? axis + x.rank + 1 : axis;
    if (d < 0 || d > x.rank)
      throw new ShapeError(`unsqueeze: [${x.shape}] has no place ${axis} for a dimension`);
    return reshape(x, x.shape.toSpliced(d, 0, 1));
  },
);

/** Removes a dimension of size 1, or all of them. */
export const squeeze: (x: Tensor, axis?: number) => Tensor = checked(
  "squeeze",
  { x: kinds.tensor, axis: kinds.optional(kinds.integer) },
  (x: Tensor, axis?: number): Tensor => {
    if (axis === undefined)
      return reshape(
        x,
        x.shape.filter((size) => size !== 1),
      );
    const d = axisOf("squeeze", x, axis);
    if (x.shape[d] !== 1)
      throw new ShapeError(`squeeze: axis ${axis} of [${x.shape}] has size ${x.shape[d]}, not 1`);
    return reshape(x, x.shape.toSpliced(d, 1));
  },
);
