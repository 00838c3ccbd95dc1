import type { DType } from "@halfstep/device";
import * as kernels from "@halfstep/kernels";
import { castTo } from "../cast.js";
import { type Composite, composite } from "../composite.js";
import { noGrad } from "../grad-mode.js";
import type { Op } from "../op.js";
import type { Tensor } from "../tensor.js";
import { isFiniteNumber, keepWhere, ne } from "./comparison.js";
import { gather } from "./indexing.js";
import { pointwise } from "./pointwise.js";
import { inDType, inFloat32 } from "./precision.js";
import { amax, amin, mean, sum } from "./reduce.js";
import { withAxisLast } from "./scan.js";
import { argmax } from "./softmax.js";
import { axisOf } from "./windows.js";

type Axes = number | readonly number[];

export interface ReduceOptions {
  /** Default: all. */
  readonly axes?: Axes | undefined;
  /** Keep the axes, with size 1. Default false. */
  readonly keepDimensions?: boolean;
}

/** s to the power 1/p. Where it is 0 its slope counts as 0, so that norms and deviations of zeros have gradients. */
const root: Op<number> = pointwise<number>({
  expression: kernels.pow,
  name: "root",
  castPolicy: "none",
  constants: (p) => [1 / p],
  backward: ({ inputs, outputs, gradients, attributes: p }) => {
    const [s, y] = [inputs[0] as Tensor, outputs[0] as Tensor];
    const slope = y.div(s).mul(1 / p);
    return [(gradients[0] as Tensor).mul(keepWhere([slope, ne(y, 0)], null))];
  },
});

export interface VarianceOptions extends ReduceOptions {
  /** Taken from the number of elements. Default 1, the unbiased variance. */
  readonly correction?: number;
}

/** Variance over `axes`, computed in float32. */
export const variance = (x: Tensor, options: VarianceOptions = {}): Tensor =>
  inFloat32(x, (typed) => squaredDeviation(typed, options));

/** Standard deviation over `axes`, computed in float32. */
export const std = (x: Tensor, options: VarianceOptions = {}): Tensor =>
  inFloat32(x, (typed) => root([squaredDeviation(typed, options)], 2));

function squaredDeviation(
  x: Tensor,
  { axes, keepDimensions = false, correction = 1 }: VarianceOptions,
): Tensor {
  const centre = mean(x, axes, true);
  const squares = x.sub(centre).square();
  const count = x.size / Math.max(1, centre.size);
  return sum(squares, axes, keepDimensions).mul(1 / Math.max(0, count - correction));
}

/** log Σ exp over `axes`, less the largest first, so that nothing overflows. */
export const logsumexp: Composite<(x: Tensor, options?: ReduceOptions) => Tensor> = composite(
  { name: "logsumexp", castPolicy: "float32" },
  (x: Tensor, { axes, keepDimensions = false }: ReduceOptions = {}): Tensor =>
    inFloat32(x, (typed) => {
      const largest = noGrad(() => {
        const most = amax(typed, axes, true);
        return keepWhere([most, isFiniteNumber([most], null)], null);
      });
      const logarithm = sum(typed.sub(largest).exp(), axes, true).log().add(largest);
      // The size-1 axes go by a sum, which takes none of the elements.
      return keepDimensions ? logarithm : sum(logarithm, axes, false);
    }),
);

export interface VectorNormOptions extends ReduceOptions {
  /** Default 2. Infinity: the largest magnitude; 0: how many are not 0. */
  readonly ord?: number;
  /** The dtype to compute in; without it, float32 under autocast. */
  readonly dtype?: DType;
}

const vectorNorm = (
  name: "norm" | "linalgVectorNorm",
): Composite<(x: Tensor, options?: VectorNormOptions) => Tensor> => {
  const typed = composite(
    { name, castPolicy: "float32Output" },
    (x: Tensor, options: VectorNormOptions = {}): Tensor => inFloat32(x, (y) => normOf(y, options)),
  );
  const call = (x: Tensor, options: VectorNormOptions = {}): Tensor =>
    inDType(x, options.dtype, (y) => typed(y, options));
  return Object.defineProperties(
    call,
    Object.getOwnPropertyDescriptors({ ...typed, name }),
  ) as typeof typed;
};

/** (Σ |x|^ord)^(1/ord) over `axes`, computed in float32. */
export const linalgVectorNorm: Composite<(x: Tensor, options?: VectorNormOptions) => Tensor> =
  vectorNorm("linalgVectorNorm");

/** The same under torch's older name. */
export const norm: Composite<(x: Tensor, options?: VectorNormOptions) => Tensor> =
  vectorNorm("norm");

function normOf(x: Tensor, { ord = 2, axes, keepDimensions = false }: VectorNormOptions): Tensor {
  const magnitude = x.abs();
  switch (ord) {
    case Number.POSITIVE_INFINITY:
      return amax(magnitude, axes, keepDimensions);
    case Number.NEGATIVE_INFINITY:
      return amin(magnitude, axes, keepDimensions);
    case 0:
      return sum(castTo(ne(x, 0), "float32"), axes, keepDimensions);
    case 1:
      return sum(magnitude, axes, keepDimensions);
    case 2:
      return root([sum(x.square(), axes, keepDimensions)], 2);
    default:
      return root([sum(magnitude.pow(ord), axes, keepDimensions)], ord);
  }
}

export interface Extremum {
  readonly values: Tensor;
  /** Places along the axis, as uint32: the first of equals. */
  readonly indices: Tensor;
}

/** The largest along an axis and where it is; NaN wins. The gradient goes to that element alone. */
export function max(x: Tensor, axis: number, keepDimensions = false): Extremum {
  const d = axisOf("max", x, axis);
  return extremum(x, argmaxAlong(x, d), d, keepDimensions);
}

/** The smallest along an axis and where it is; NaN wins. The gradient goes to that element alone. */
export function min(x: Tensor, axis: number, keepDimensions = false): Extremum {
  const d = axisOf("min", x, axis);
  return extremum(
    x,
    noGrad(() => argmaxAlong(x.neg(), d)),
    d,
    keepDimensions,
  );
}

/** Places of the largest along an axis, which stays with size 1. */
const argmaxAlong = (x: Tensor, axis: number): Tensor =>
  noGrad(() =>
    withAxisLast(x, axis, (rows) => {
      const places = argmax([rows], null);
      return places.reshape([...places.shape, 1]);
    }),
  );

function extremum(x: Tensor, indices: Tensor, axis: number, keepDimensions: boolean): Extremum {
  const values = gather(x, axis, indices);
  if (keepDimensions) return { values, indices };
  const shape = x.shape.toSpliced(axis, 1);
  return { values: values.reshape(shape), indices: indices.reshape(shape) };
}
