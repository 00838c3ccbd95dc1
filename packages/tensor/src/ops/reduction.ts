import type { CastPolicy } from "@halfstep/autocast";
import type { DType } from "@halfstep/device";
import { type ReduceOp, reduce as reduceLaunch } from "@halfstep/kernels";
import { checked } from "../arguments/arguments.js";
import * as kinds from "../arguments/kinds.js";
import { defineOp, type Op, type Operand, type TensorSpec } from "../dispatch/op.js";
import { ShapeError } from "../errors.js";
import type { Tensor } from "../tensor/tensor.js";
import { floating } from "./floating.js";
import { inDType } from "./precision.js";
import { axesOf } from "./windows.js";

/** The attributes of reductions. */
export interface Reduction {
  /** The first and the last of the neighbouring axes that are reduced. */
  readonly first: number;
  readonly last: number;
}

const product = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1);

/** Reduces each line along neighbouring axes to one number; the axes keep size 1. */
export function reduceOp(
  name: string,
  op: ReduceOp,
  castPolicy: CastPolicy,
  backward: (context: ReductionBackward) => Tensor,
  takes: "floats" | "numbers" = "numbers",
): Op<Reduction> {
  return defineOp<Reduction>({
    name,
    castPolicy,
    shape([x], { first, last }) {
      const { shape, dtype } =
        takes === "floats" ? floating(name, x as TensorSpec) : (x as TensorSpec);
      return [{ shape: shape.map((size, d) => (d >= first && d <= last ? 1 : size)), dtype }];
    },
    forward({ target, inputs, outputs, attributes }) {
      const [input, out] = [inputs[0] as Operand, outputs[0] as Operand];
      reduceLaunch(target, { input, out }, { op, ...linesOf(input.shape, attributes) });
    },
    backward: ({ inputs, outputs, gradients, attributes }) => [
      backward({
        x: inputs[0] as Tensor,
        y: outputs[0] as Tensor,
        g: gradients[0] as Tensor,
        lines: linesOf((inputs[0] as Tensor).shape, attributes),
        attributes,
      }),
    ],
  });
}

export interface ReductionBackward {
  readonly x: Tensor;
  readonly y: Tensor;
  readonly g: Tensor;
  readonly lines: Lines;
  readonly attributes: Reduction;
}

interface Lines {
  readonly outer: number;
  readonly size: number;
  readonly inner: number;
}

const linesOf = (shape: readonly number[], { first, last }: Reduction): Lines => ({
  outer: product(shape.slice(0, first)),
  size: product(shape.slice(first, last + 1)),
  inner: product(shape.slice(last + 1)),
});

type Axes = number | readonly number[] | undefined;

/** Options of reductions over axes. */
export interface KeepOptions {
  /** Keep the axes, with size 1. Default false. */
  readonly keepDimensions?: boolean;
}

/** Options of sums and products over axes. */
export interface SumOptions extends KeepOptions {
  /** The dtype to compute in, as in torch; without it, float32 under autocast. */
  readonly dtype?: DType;
}

export type Reduce<O> = (x: Tensor, axes?: Axes, options?: O) => Tensor;

/** The calling form of reductions: `amax(x, 1, { keepDimensions: true })`. */
export const reduction = (name: string, body: Reduce<KeepOptions>): Reduce<KeepOptions> =>
  checked(
    name,
    {
      x: kinds.tensor,
      axes: kinds.optional(kinds.axes),
      options: kinds.optionals({ keepDimensions: kinds.flag }),
    },
    body,
  );

export const typedReduction = (name: string, op: Op<Reduction>): Reduce<SumOptions> =>
  checked(
    name,
    {
      x: kinds.tensor,
      axes: kinds.optional(kinds.axes),
      options: kinds.optionals({ keepDimensions: kinds.flag, dtype: kinds.dtype }),
    },
    (x: Tensor, axes?: Axes, { keepDimensions = false, dtype }: SumOptions = {}): Tensor =>
      inDType(x, dtype, (typed) => reduceAxes(op, typed, axes, { keepDimensions })),
  );

export const untypedReduction = (
  name: string,
  op: Op<Reduction>,
  { needsElements = false }: { readonly needsElements?: boolean } = {},
): Reduce<KeepOptions> =>
  reduction(name, (x, axes, { keepDimensions = false } = {}) =>
    reduceAxes(op, x, axes, { keepDimensions, needsElements }),
  );

function reduceAxes(
  op: Op<Reduction>,
  x: Tensor,
  axes: Axes,
  {
    keepDimensions,
    needsElements = false,
  }: { readonly keepDimensions: boolean; readonly needsElements?: boolean },
): Tensor {
  const all = x.shape.map((_, d) => d);
  const wanted = axes === undefined ? all : typeof axes === "number" ? [axes] : axes;
  if (wanted.length === 0 && x.rank > 0)
    throw new ShapeError(
      `${op.name}: an empty list of axes is all of them in torch and none in NumPy: leave axes out to reduce all of them`,
    );
  // A scalar is a line of one element, as in torch: axis 0 or -1 is its own.
  const given = x.rank === 0 ? { shape: [1] } : x;
  const chosen = axesOf(op.name, given, wanted);
  if (needsElements && all.some((d) => chosen.has(d) && x.shape[d] === 0))
    throw new ShapeError(`${op.name}: [${x.shape}] has no elements over its axes [${[...chosen]}]`);
  let result = x;
  for (let last = x.rank - 1; last >= 0; last--) {
    if (!chosen.has(last)) continue;
    let first = last;
    while (chosen.has(first - 1)) first--;
    result = op.apply([result], { first, last });
    last = first;
  }
  if (x.rank === 0) result = op.apply([x.reshape([1])], { first: 0, last: 0 }).reshape([]);
  return keepDimensions ? result : result.reshape(x.shape.filter((_, d) => !chosen.has(d)));
}
