import { reduce as reduceLaunch } from "@halfstep/kernels";
import { ShapeError } from "../errors.js";
import { defineOp, type Op, type Operand, type TensorSpec } from "../op.js";
import type { Tensor } from "../tensor.js";

interface Reduction {
  /** The first and the last of the neighbouring axes that are reduced. */
  readonly first: number;
  readonly last: number;
}

const product = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1);

const reduceOp = (name: "sum" | "mean"): Op<Reduction> =>
  defineOp<Reduction>({
    name,
    castPolicy: name === "sum" ? "float32Output" : "none",
    shape([x], { first, last }) {
      const { shape, dtype } = x as TensorSpec;
      return [{ shape: shape.map((size, d) => (d >= first && d <= last ? 1 : size)), dtype }];
    },
    forward({ target, inputs, outputs, attributes: { first, last } }) {
      const input = inputs[0] as Operand;
      reduceLaunch(
        target,
        { input, out: outputs[0] as Operand },
        {
          op: name,
          outer: product(input.shape.slice(0, first)),
          size: product(input.shape.slice(first, last + 1)),
          inner: product(input.shape.slice(last + 1)),
        },
      );
    },
    backward({ inputs, gradients, attributes: { first, last } }) {
      const { shape } = inputs[0] as Tensor;
      const gradient = gradients[0] as Tensor;
      const size = product(shape.slice(first, last + 1));
      return [(name === "mean" ? gradient.mul(1 / size) : gradient).expand(shape)];
    },
  });

const sumOp = reduceOp("sum");
const meanOp = reduceOp("mean");

export const sum = (
  x: Tensor,
  axes: number | readonly number[] | undefined,
  keepDimensions: boolean,
): Tensor => reduceAxes(sumOp, x, axes, keepDimensions);

export const mean = (
  x: Tensor,
  axes: number | readonly number[] | undefined,
  keepDimensions: boolean,
): Tensor => reduceAxes(meanOp, x, axes, keepDimensions);

/** The gradient of a broadcast: summed over the dimensions that were repeated. */
export function sumTo(x: Tensor, shape: readonly number[]): Tensor {
  const lead = x.shape.length - shape.length;
  const axes = x.shape.flatMap((size, d) =>
    d < lead || (size !== 1 && shape[d - lead] === 1) ? [d] : [],
  );
  return axes.length === 0 ? x : sum(x, axes, true).reshape(shape);
}

function reduceAxes(
  op: Op<Reduction>,
  x: Tensor,
  axes: number | readonly number[] | undefined,
  keepDimensions: boolean,
): Tensor {
  const all = x.shape.map((_, d) => d);
  const wanted = axes === undefined ? all : typeof axes === "number" ? [axes] : axes;
  const chosen = new Set(wanted.map((axis) => (axis < 0 ? axis + x.rank : axis)));
  for (const axis of chosen)
    if (!(axis in x.shape))
      throw new ShapeError(`${op.name}: axis ${axis} is none of the dimensions of [${x.shape}]`);
  let result = x;
  for (let last = x.rank - 1; last >= 0; last--) {
    if (!chosen.has(last)) continue;
    let first = last;
    while (chosen.has(first - 1)) first--;
    result = op([result], { first, last });
    last = first;
  }
  if (x.rank === 0) result = op([x.reshape([1])], { first: 0, last: 0 }).reshape([]);
  return keepDimensions ? result : result.reshape(x.shape.filter((_, d) => !chosen.has(d)));
}
