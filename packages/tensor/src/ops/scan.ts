import type { DType } from "@halfstep/device";
import * as kernels from "@halfstep/kernels";
import { checked } from "../arguments/arguments.js";
import * as kinds from "../arguments/kinds.js";
import { defineOp, type Op, type Operand, type TensorSpec } from "../dispatch/op.js";
import type { Tensor } from "../tensor/tensor.js";
import { inDType } from "./precision.js";
import { axisOf, shift } from "./windows.js";

interface Direction {
  readonly reverse: boolean;
}

const rowsOf = ({ shape }: TensorSpec): { rows: number; columns: number } => ({
  rows: shape.slice(0, -1).reduce((a, b) => a * b, 1),
  columns: shape.at(-1) ?? 1,
});

const cumsumOp: Op<Direction> = defineOp<Direction>({
  name: "cumsum",
  castPolicy: "float32Output",
  shape: ([x]) => [x as TensorSpec],
  forward({ target, inputs, outputs, attributes }) {
    const [input, out] = [inputs[0] as Operand, outputs[0] as Operand];
    kernels.scan(target, { input, out }, { op: "sum", ...rowsOf(input), ...attributes });
  },
  backward: ({ gradients, attributes: { reverse } }) => [
    cumsumOp.apply([gradients[0] as Tensor], { reverse: !reverse }),
  ],
});

const cumprodOp: Op<Direction> = defineOp<Direction>({
  name: "cumprod",
  castPolicy: "float32Output",
  shape: ([x]) => [x as TensorSpec],
  forward({ target, inputs, outputs, attributes }) {
    const [input, out] = [inputs[0] as Operand, outputs[0] as Operand];
    kernels.scan(target, { input, out }, { op: "product", ...rowsOf(input), ...attributes });
  },
  // Without division, so that zeros among the factors are correct.
  backward({ inputs, outputs, gradients, attributes: { reverse } }) {
    const [before, behind] = reverse ? [-1, 1] : [1, -1];
    const factors = shift(inputs[0] as Tensor, behind, 0);
    const back = recurrence.apply([gradients[0] as Tensor, factors], { reverse: !reverse });
    return [back.mul(shift(outputs[0] as Tensor, before, 1))];
  },
});

/** [x, m]: h = m · h + x along each row, which starts at 0. */
const recurrence: Op<Direction> = defineOp<Direction>({
  name: "linearRecurrence",
  castPolicy: "promote",
  shape: ([x]) => [x as TensorSpec],
  forward({ target, inputs, outputs, attributes }) {
    const [input, multiplier] = inputs as [Operand, Operand];
    kernels.scan(
      target,
      { input, multiplier, out: outputs[0] as Operand },
      { op: "recurrence", ...rowsOf(input), ...attributes },
    );
  },
  backward({ inputs, outputs, gradients, needs, attributes: { reverse } }) {
    const [before, behind] = reverse ? [-1, 1] : [1, -1];
    const factors = shift(inputs[1] as Tensor, behind, 0);
    const back = recurrence.apply([gradients[0] as Tensor, factors], { reverse: !reverse });
    return [back, needs[1] ? back.mul(shift(outputs[0] as Tensor, before, 0)) : undefined];
  },
});

/** Options of {@link cumsum} and {@link cumprod}. */
export interface CumulateOptions {
  /** From the last element to the first. Default false. */
  readonly reverse?: boolean;
  /** The dtype to compute in; without it, float32 under autocast. */
  readonly dtype?: DType;
}

type Cumulate = (x: Tensor, axis: number, options?: CumulateOptions) => Tensor;

const along = (op: Op<Direction>): Cumulate =>
  checked(
    op.name,
    {
      x: kinds.tensor,
      axis: kinds.integer,
      options: kinds.optionals({ reverse: kinds.flag, dtype: kinds.dtype }),
    },
    (x: Tensor, axis: number, { reverse = false, dtype }: CumulateOptions = {}): Tensor => {
      const line = x.rank === 0 ? x.reshape([1]) : x;
      const d = axisOf(op.name, line, axis);
      const result = inDType(line, dtype, (typed) =>
        withAxisLast(typed, d, (rows) => op.apply([rows], { reverse })),
      );
      return x.rank === 0 ? result.reshape([]) : result;
    },
  );

/** Applies `f` to x with one axis moved to the end, and moves the axis back. */
export function withAxisLast(x: Tensor, axis: number, f: (x: Tensor) => Tensor): Tensor {
  if (axis === x.rank - 1) return f(x);
  const order = x.shape.map((_, d) => d).filter((d) => d !== axis);
  const last = [...order, axis];
  return f(x.permute(last)).permute(x.shape.map((_, d) => last.indexOf(d)));
}

/** The running sum along an axis; of integers modulo 2^32. */
export const cumsum: Cumulate = along(cumsumOp);

/** The running product along an axis; of integers modulo 2^32. */
export const cumprod: Cumulate = along(cumprodOp);
