import type { DType } from "@halfstep/device";
import * as kernels from "@halfstep/kernels";
import { checked } from "../arguments/arguments.js";
import * as kinds from "../arguments/kinds.js";
import { noGrad } from "../autograd/grad-mode.js";
import { castTo } from "../dispatch/cast.js";
import { type Composite, composite } from "../dispatch/composite.js";
import type { Op } from "../dispatch/op.js";
import type { Tensor } from "../tensor/tensor.js";
import { eq, isFiniteNumber, keepWhere, logicalNot, maskedFill, ne } from "./comparison.js";
import { gather } from "./indexing.js";
import { pointwise } from "./pointwise.js";
import { inDType, inFloat32 } from "./precision.js";
import { amax, amin } from "./reduce.js";
import type { KeepOptions } from "./reduction.js";
import { withAxisLast } from "./scan.js";
import { argmaxOfRows } from "./softmax.js";
import { mean, sum } from "./sums.js";
import { pow } from "./transcendental.js";
import { axisOf } from "./windows.js";

type Axes = number | readonly number[];

const infinity = Number.POSITIVE_INFINITY;

const overAxes = { axes: kinds.axes, keepDimensions: kinds.flag };

/** Options of functions that take all axes together by default. */
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
    const isRoot = ne(y, 0);
    // Not divided by 0, whose derivative would make second derivatives NaN.
    const slope = y.div(maskedFill(s, logicalNot(isRoot), 1)).mul(1 / p);
    return [(gradients[0] as Tensor).mul(keepWhere(slope, isRoot))];
  },
});

/** Options of {@link variance} and {@link std}. */
export interface VarianceOptions extends ReduceOptions {
  /** Subtracted from the number of elements in the divisor. Default 1, the unbiased variance. */
  readonly correction?: number;
}

type Deviation = (x: Tensor, options?: VarianceOptions) => Tensor;

const deviation = (
  name: string,
  body: (x: Tensor, options: VarianceOptions) => Tensor,
): Deviation =>
  checked(
    name,
    { x: kinds.tensor, options: kinds.optionals({ ...overAxes, correction: kinds.number }) },
    (x: Tensor, options: VarianceOptions = {}): Tensor => body(x, options),
  );

/** Variance over `axes`, computed in float32. */
export const variance: Deviation = deviation("variance", (x, options) =>
  inFloat32(x, (typed) => squaredDeviation(typed, options)),
);

/** Standard deviation over `axes`, computed in float32. */
export const std: Deviation = deviation("std", (x, options) =>
  inFloat32(x, (typed) => root.apply([squaredDeviation(typed, options)], 2)),
);

function squaredDeviation(
  x: Tensor,
  { axes, keepDimensions = false, correction = 1 }: VarianceOptions,
): Tensor {
  const centre = mean(x, axes, { keepDimensions: true });
  const squares = x.sub(centre).square();
  const count = x.size / Math.max(1, centre.size);
  return sum(squares, axes, { keepDimensions }).mul(1 / Math.max(0, count - correction));
}

/** log Σ exp over `axes`, −∞ of nothing. The maximum is subtracted first, so that nothing overflows. */
export const logsumexp: Composite<(x: Tensor, options?: ReduceOptions) => Tensor> = composite(
  {
    name: "logsumexp",
    castPolicy: "float32",
    parameters: { x: kinds.tensor, options: kinds.optionals(overAxes) },
  },
  (x: Tensor, { axes, keepDimensions = false }: ReduceOptions = {}): Tensor =>
    inFloat32(x, (typed) => {
      if (typed.size === 0) return sum(typed.exp(), axes, { keepDimensions }).log();
      const largest = noGrad(() => {
        const most = amax(typed, axes, { keepDimensions: true });
        return keepWhere(most, isFiniteNumber(most));
      });
      const logarithm = sum(typed.sub(largest).exp(), axes, { keepDimensions: true })
        .log()
        .add(largest);
      // A sum removes the axes, which have size 1.
      return keepDimensions ? logarithm : sum(logarithm, axes);
    }),
);

/** Options of {@link norm}. */
export interface VectorNormOptions extends ReduceOptions {
  /** Default 2. Infinity: the largest magnitude; 0: the number of nonzero elements. */
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
  const call = checked(
    name,
    {
      x: kinds.tensor,
      options: kinds.optionals({ ...overAxes, ord: kinds.number, dtype: kinds.dtype }),
    },
    (x: Tensor, options: VectorNormOptions = {}): Tensor =>
      inDType(x, options.dtype, (y) => typed(y, options)),
  );
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
  const keep = { keepDimensions };
  switch (ord) {
    case infinity:
      return amax(magnitude, axes, keep);
    case -infinity:
      return amin(magnitude, axes, keep);
    case 0:
      return sum(castTo(ne(x, 0), "float32"), axes, keep);
    case 1:
      return sum(magnitude, axes, keep);
    case 2:
      return root.apply([sum(x.square(), axes, keep)], 2);
    default:
      return root.apply([sum(powerOf(magnitude, ord), axes, keep)], ord);
  }
}

/** |x|^p, of which the gradient is 0 at 0 as in torch, also where the slope is infinite: for p below 1. */
function powerOf(magnitude: Tensor, p: number): Tensor {
  if (p > 1) return pow(magnitude, p);
  const isZero = eq(magnitude, 0);
  return maskedFill(pow(maskedFill(magnitude, isZero, 1), p), isZero, p > 0 ? 0 : infinity);
}

/** Elements along an axis, and their indices. */
export interface Extremum {
  /** The elements. */
  readonly values: Tensor;
  /** Indices along the axis, as uint32; ties go to the first. */
  readonly indices: Tensor;
}

/** A choice of one element of each line along an axis. */
export type AlongAxis = (x: Tensor, axis: number, options?: KeepOptions) => Extremum;

export const alongAxis = (name: string, placesOf: (x: Tensor, d: number) => Tensor): AlongAxis =>
  checked(
    name,
    {
      x: kinds.tensor,
      axis: kinds.integer,
      options: kinds.optionals({ keepDimensions: kinds.flag }),
    },
    (x: Tensor, axis: number, { keepDimensions = false }: KeepOptions = {}): Extremum => {
      if (x.rank === 0) return ofScalar(name, x, axis);
      const d = axisOf(name, x, axis);
      return extremum(x, placesOf(x, d), d, keepDimensions);
    },
  );

/** A scalar is a line of one element, as in torch: along axis 0 or -1 it is its own extremum. */
export function ofScalar(name: string, x: Tensor, axis: number): Extremum {
  axisOf(name, { shape: [1] }, axis);
  return { values: x, indices: x.runtime.tensor(new Uint32Array(1), []) };
}

/** The largest element along an axis and its index; NaN wins. The gradient goes to that element alone. */
export const max: AlongAxis = alongAxis("max", (x, d) => argmaxAlong(x, d, true));

/** The smallest element along an axis and its index; NaN wins. The gradient goes to that element alone. */
export const min: AlongAxis = alongAxis("min", (x, d) => argmaxAlong(x, d, false));

/** Indices of the largest or smallest elements along an axis, which keeps size 1. */
export const argmaxAlong = (x: Tensor, axis: number, largest: boolean): Tensor =>
  noGrad(() =>
    withAxisLast(x, axis, (rows) => {
      const places = argmaxOfRows(rows, largest);
      return places.reshape([...places.shape, 1]);
    }),
  );

function extremum(x: Tensor, indices: Tensor, axis: number, keepDimensions: boolean): Extremum {
  const values = gather(x, axis, indices);
  if (keepDimensions) return { values, indices };
  const shape = x.shape.toSpliced(axis, 1);
  return { values: values.reshape(shape), indices: indices.reshape(shape) };
}
