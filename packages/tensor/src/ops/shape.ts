import { elementwise, identity, permute as permuteLaunch } from "@halfstep/kernels";
import { ShapeError } from "../errors.js";
import { isGradEnabled } from "../grad-mode.js";
import { dependOn } from "../grad-node.js";
import { defineOp, type Op, type Operand, type TensorSpec } from "../op.js";
import type { Tensor } from "../tensor.js";
import { sumTo } from "./reduce.js";

const product = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1);

/** The same elements in another shape, over the same memory. One size may be -1. */
export function reshape(x: Tensor, shape: readonly number[]): Tensor {
  const known = product(shape.filter((size) => size !== -1));
  const inferred = shape.map((size) => (size === -1 ? x.size / known : size));
  if (product(inferred) !== x.size || inferred.some((size) => !Number.isInteger(size)))
    throw new ShapeError(
      `reshape: [${x.shape}] has ${x.size} elements, which do not fill [${shape}]`,
    );
  const view = x.runtime.viewOf(x, inferred);
  if (x.requiresGrad && isGradEnabled())
    dependOn([x], [view], {
      name: "reshape",
      backward: ({ gradients }) => [reshape(gradients[0] as Tensor, x.shape)],
    });
  return view;
}

/** Repeats size-1 dimensions, and adds leading ones. */
export const expand: Op<readonly number[]> = defineOp<readonly number[]>({
  name: "expand",
  castPolicy: "none",
  shape([x], shape) {
    const { shape: from, dtype } = x as TensorSpec;
    const lead = shape.length - from.length;
    if (lead < 0 || from.some((size, d) => size !== 1 && size !== shape[lead + d]))
      throw new ShapeError(
        `expand: [${from}] does not expand to [${shape}]: only sizes of 1 can be repeated`,
      );
    return [{ shape, dtype }];
  },
  forward({ target, inputs, outputs }) {
    target.launch(elementwise(identity, inputs, outputs[0] as Operand));
  },
  backward: ({ inputs, gradients }) => [sumTo(gradients[0] as Tensor, (inputs[0] as Tensor).shape)],
});

/** The dimensions in another order: result dimension d is input dimension order[d]. */
export const permute: Op<readonly number[]> = defineOp<readonly number[]>({
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
    return [permute([gradients[0] as Tensor], inverse)];
  },
});
