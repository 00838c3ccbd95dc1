import { checked } from "../arguments/arguments.js";
import * as kinds from "../arguments/kinds.js";
import type { Op } from "../dispatch/op.js";
import { isSameShape } from "../shapes.js";
import type { Tensor } from "../tensor/tensor.js";
import {
  type KeepOptions,
  type Reduce,
  type Reduction,
  reduceOp,
  type SumOptions,
  typedReduction,
  untypedReduction,
} from "./reduction.js";

export const sumOp: Op<Reduction> = reduceOp("sum", "sum", "float32Output", ({ x, g }) =>
  g.expand(x.shape),
);
export const meanOp: Op<Reduction> = reduceOp(
  "mean",
  "mean",
  "none",
  ({ x, g, lines }) => g.mul(1 / lines.size).expand(x.shape),
  "floats",
);

/**
 * Sum over `axes` (all of them where undefined), in float32 under autocast unless a `dtype` is given. Integers are added modulo 2^32 and
 * stay what they are, so that the sum of a mask counts. An empty list of axes is refused: torch takes all of them, NumPy none.
 */
export const sum: Reduce<SumOptions> = typedReduction("sum", sumOp);

/** Mean over `axes` (all of them where undefined), added up in float32. NaN for empty axes. Integers are refused, as in torch. */
export const mean: Reduce<KeepOptions> = untypedReduction("mean", meanOp);

/** The gradient of a broadcast: summed over the dimensions that were repeated. */
export const sumTo: (x: Tensor, shape: readonly number[]) => Tensor = checked(
  "sumTo",
  { x: kinds.tensor, shape: kinds.integers },
  (x: Tensor, shape: readonly number[]): Tensor => {
    if (isSameShape(x.shape, shape)) return x;
    const lead = x.shape.length - shape.length;
    const axes = x.shape.flatMap((size, d) =>
      d < lead || (size !== 1 && shape[d - lead] === 1) ? [d] : [],
    );
    return axes.length === 0 ? x : sum(x, axes, { keepDimensions: true }).reshape(shape);
  },
);
