import { DTypeError } from "@halfstep/autocast";
import { concatenate as concatenateLaunch, maxConcatenated } from "@halfstep/kernels";
import { checked } from "../arguments/arguments.js";
import * as kinds from "../arguments/kinds.js";
import { defineOp, type Op, type Operand, type TensorSpec } from "../dispatch/op.js";
import { ShapeError } from "../errors.js";
import type { Tensor } from "../tensor/tensor.js";
import { axisOf, narrow } from "./windows.js";

const product = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1);

export const catOp: Op<number> = defineOp<number>({
  name: "cat",
  castPolicy: "promote",
  shape(inputs, axis) {
    const [first] = inputs as [TensorSpec];
    for (const { shape, dtype } of inputs) {
      if (dtype !== first.dtype)
        throw new DTypeError(`cat: operands are ${first.dtype} and ${dtype}; cast one with to()`);
      if (shape.with(axis, 0).join() !== first.shape.with(axis, 0).join())
        throw new ShapeError(
          `cat: [${first.shape}] and [${shape}] differ in more than axis ${axis}`,
        );
    }
    const size = inputs.reduce((total, { shape }) => total + (shape[axis] as number), 0);
    return [{ shape: first.shape.with(axis, size), dtype: first.dtype }];
  },
  forward({ target, inputs, outputs, attributes: axis }) {
    const out = outputs[0] as Operand;
    const sizes = inputs.map(({ shape }) => shape[axis] as number);
    const lines = {
      outer: product(out.shape.slice(0, axis)),
      inner: product(out.shape.slice(axis + 1)),
    };
    target.launch(concatenateLaunch({ inputs, out }, { ...lines, sizes }));
  },
  backward({ inputs, gradients, needs, attributes: axis }) {
    let start = 0;
    return inputs.map(({ shape }, i) => {
      const size = shape[axis] as number;
      start += size;
      return needs[i] ? narrow(gradients[0] as Tensor, axis, start - size, size) : undefined;
    });
  },
});

/** Tensors one after the other along an axis. Floating dtypes promote, with or without autocast. */
export const cat: (tensors: readonly Tensor[], axis?: number) => Tensor = checked(
  "cat",
  { tensors: kinds.tensors, axis: kinds.optional(kinds.integer) },
  (tensors: readonly Tensor[], axis = 0): Tensor => {
    const [first] = tensors;
    if (!first) throw new ShapeError("cat needs at least one tensor");
    const d = axisOf("cat", first, axis);
    const odd = tensors.find(({ rank }) => rank !== first.rank);
    if (odd) throw new ShapeError(`cat: [${first.shape}] and [${odd.shape}] differ in rank`);
    let pieces = tensors;
    while (pieces.length > maxConcatenated) {
      const groups = Math.ceil(pieces.length / maxConcatenated);
      pieces = Array.from({ length: groups }, (_, g) =>
        catOp.apply(pieces.slice(g * maxConcatenated, (g + 1) * maxConcatenated), d),
      );
    }
    return catOp.apply(pieces, d);
  },
);

/** Tensors of one shape along a new axis. */
export const stack: (tensors: readonly Tensor[], axis?: number) => Tensor = checked(
  "stack",
  { tensors: kinds.tensors, axis: kinds.optional(kinds.integer) },
  (tensors: readonly Tensor[], axis = 0): Tensor => {
    const [first] = tensors;
    if (!first) throw new ShapeError("stack needs at least one tensor");
    const d = axis < 0 ? axis + first.rank + 1 : axis;
    return cat(
      tensors.map((x) => x.reshape(x.shape.toSpliced(d, 0, 1))),
      d,
    );
  },
);

/** Shifts the elements along an axis by `by` places; those past the end wrap around to the start. */
export const roll: (x: Tensor, by: number, axis: number) => Tensor = checked(
  "roll",
  { x: kinds.tensor, by: kinds.integer, axis: kinds.integer },
  (x: Tensor, by: number, axis: number): Tensor => {
    const d = axisOf("roll", x, axis);
    const size = x.shape[d] as number;
    const start = size === 0 ? 0 : ((-by % size) + size) % size;
    if (start === 0) return x;
    return cat([narrow(x, d, start, size - start), narrow(x, d, 0, start)], d);
  },
);
