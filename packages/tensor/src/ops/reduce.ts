import type { CastPolicy } from "@halfstep/autocast";
import type { DType } from "@halfstep/device";
import { type ReduceOp, reduce as reduceLaunch } from "@halfstep/kernels";
import { checked } from "../arguments/arguments.js";
import * as kinds from "../arguments/kinds.js";
import { castTo } from "../dispatch/cast.js";
import { defineOp, type Op, type Operand, type TensorSpec } from "../dispatch/op.js";
import { ShapeError } from "../errors.js";
import { isSameShape } from "../shapes.js";
import type { Tensor } from "../tensor/tensor.js";
import { eq, keepWhere, logicalNot, lt, ne } from "./comparison.js";
import { floating } from "./floating.js";
import { inDType } from "./precision.js";
import { cumprod } from "./scan.js";
import { axisOf, shift } from "./windows.js";

/** The attributes of reductions. */
export interface Reduction {
  /** The first and the last of the neighbouring axes that are reduced. */
  readonly first: number;
  readonly last: number;
}

const product = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1);

/** Reduces each line along neighbouring axes to one number; the axes keep size 1. */
function reduceOp(
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

interface ReductionBackward {
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

/** Equal extrema share the gradient. */
const toExtrema = ({ x, y, g, attributes }: ReductionBackward): Tensor => {
  const isExtreme = castTo(eq(x, y), "float32");
  return isExtreme.mul(castTo(g, "float32").div(sumOp.apply([isExtreme], attributes)));
};

export const maxOp: Op<Reduction> = reduceOp("amax", "max", "none", toExtrema);
export const minOp: Op<Reduction> = reduceOp("amin", "min", "none", toExtrema);

/** The largest elements of neighbouring axes, each of which has the whole gradient; so have all elements of a line with a NaN. */
const maxToEach: Op<Reduction> = reduceOp("amaxToEach", "max", "none", ({ x, y, g }) =>
  keepWhere(g.expand(x.shape), logicalNot(lt(x, y))),
);

/** Maximum over the last axis, 0 of no elements. Equal maxima have the whole gradient each, unlike those of `amax`. */
export const amaxToEach = (x: Tensor): Tensor => {
  const last = x.rank - 1;
  const lead = x.shape.slice(0, last);
  return x.shape[last] === 0
    ? sum(x, last)
    : maxToEach.apply([x], { first: last, last }).reshape(lead);
};

/**
 * The gradient is the product of all other elements, computed from those before and those behind: correct where some are
 * 0.
 */
const prodOp: Op<Reduction> = reduceOp("prod", "prod", "float32Output", ({ x, g, lines }) => {
  const { outer, size, inner } = lines;
  const rows = x.reshape([outer, size, inner]).permute([0, 2, 1]);
  const before = cumprod(shift(rows, 1, 1), -1);
  const behind = cumprod(shift(rows, -1, 1), -1, { reverse: true });
  const others = before.mul(behind).permute([0, 2, 1]).reshape(x.shape);
  return g.mul(others);
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

type Reduce<O> = (x: Tensor, axes?: Axes, options?: O) => Tensor;

/** The calling form of reductions: `amax(x, 1, { keepDimensions: true })`. */
const reduction = (name: string, body: Reduce<KeepOptions>): Reduce<KeepOptions> =>
  checked(
    name,
    {
      x: kinds.tensor,
      axes: kinds.optional(kinds.axes),
      options: kinds.optionals({ keepDimensions: kinds.flag }),
    },
    body,
  );

const typedReduction = (name: string, op: Op<Reduction>): Reduce<SumOptions> =>
  checked(
    name,
    {
      x: kinds.tensor,
      axes: kinds.optional(kinds.axes),
      options: kinds.optionals({ keepDimensions: kinds.flag, dtype: kinds.dtype }),
    },
    (x: Tensor, axes?: Axes, { keepDimensions = false, dtype }: SumOptions = {}): Tensor =>
      inDType(x, dtype, (typed) => reduceAxes(op, typed, axes, keepDimensions)),
  );

const untypedReduction = (name: string, op: Op<Reduction>): Reduce<KeepOptions> =>
  reduction(name, (x, axes, { keepDimensions = false } = {}) =>
    reduceAxes(op, x, axes, keepDimensions),
  );

/**
 * Sum over `axes` (all of them where undefined), in float32 under autocast unless a `dtype` is given. Integers are added modulo 2^32 and
 * stay what they are, so that the sum of a mask counts.
 */
export const sum: Reduce<SumOptions> = typedReduction("sum", sumOp);

/** Mean over `axes` (all of them where undefined), added up in float32. NaN for empty axes. Integers are refused, as in torch. */
export const mean: Reduce<KeepOptions> = untypedReduction("mean", meanOp);

/** Product over `axes`, in float32 under autocast unless a `dtype` is given; of integers modulo 2^32. */
export const prod: Reduce<SumOptions> = typedReduction("prod", prodOp);

/** Maximum over `axes`; NaN wins. Equal maxima share the gradient. */
export const amax: Reduce<KeepOptions> = untypedReduction("amax", maxOp);

/** Minimum over `axes`; NaN wins. Equal minima share the gradient. */
export const amin: Reduce<KeepOptions> = untypedReduction("amin", minOp);

/** Whether any number over `axes` is not 0, as a mask: 0 where there are none. */
export const any: Reduce<KeepOptions> = reduction("any", (x, axes, options) =>
  x.size === 0 ? sum(ne(x, 0), axes, options) : amax(ne(x, 0), axes, options),
);

/** Whether no number over `axes` is 0, as a mask: 1 where there are none. */
export const all: Reduce<KeepOptions> = reduction("all", (x, axes, options) =>
  x.size === 0 ? prod(ne(x, 0), axes, options) : amin(ne(x, 0), axes, options),
);

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

function reduceAxes(op: Op<Reduction>, x: Tensor, axes: Axes, keepDimensions: boolean): Tensor {
  const all = x.shape.map((_, d) => d);
  const wanted = axes === undefined ? all : typeof axes === "number" ? [axes] : axes;
  // A scalar is a line of one element, as in torch: axis 0 or -1 is its own.
  const given = x.rank === 0 ? { shape: [1] } : x;
  const chosen = new Set(wanted.map((axis) => axisOf(op.name, given, axis)));
  if (
    (op === maxOp || op === minOp) &&
    x.size === 0 &&
    all.some((d) => chosen.has(d) && x.shape[d] === 0)
  )
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
