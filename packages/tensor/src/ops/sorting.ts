import { isFloating } from "@halfstep/formats/dtypes";
import * as kernels from "@halfstep/kernels";
import { checked } from "../arguments/arguments.js";
import * as kinds from "../arguments/kinds.js";
import { noGrad } from "../autograd/grad-mode.js";
import { castTo } from "../dispatch/cast.js";
import { defineOp, type Op, type Operand, type TensorSpec } from "../dispatch/op.js";
import { ShapeError } from "../errors.js";
import type { Tensor } from "../tensor/tensor.js";
import { eq, isNan, logicalAnd, logicalOr, where } from "./comparison.js";
import { gather } from "./indexing.js";
import { amax } from "./reduce.js";
import type { KeepOptions } from "./reduction.js";
import { type AlongAxis, alongAxis, argmaxAlong, type Extremum, ofScalar } from "./statistics.js";
import { mean, sum } from "./sums.js";
import { topK } from "./top-k.js";
import { axisOf, narrow } from "./windows.js";

/** Options of {@link sort} and {@link argsort}. */
export interface SortOptions {
  /** Default the last. */
  readonly axis?: number;
  /** The largest first. Default false. */
  readonly descending?: boolean;
}

const parameters = {
  x: kinds.tensor,
  options: kinds.optionals({ axis: kinds.integer, descending: kinds.flag }),
};

/**
 * The elements in order along an axis, and their indices as uint32. Equal ones stay in order; NaN counts as larger than every number, as in
 * torch. Lines of n take n · log² n comparisons.
 */
export const sort: (x: Tensor, options?: SortOptions) => Extremum = checked(
  "sort",
  parameters,
  (x: Tensor, options: SortOptions = {}): Extremum => {
    if (x.rank === 0) return ofScalar("sort", x, options.axis ?? -1);
    const indices = argsort(x, options);
    return { values: gather(x, axisOf("sort", x, options.axis ?? -1), indices), indices };
  },
);

/** The indices that sort x along an axis, as uint32: those of {@link sort}. */
export const argsort: (x: Tensor, options?: SortOptions) => Tensor = checked(
  "argsort",
  parameters,
  (x: Tensor, { axis = -1, descending = false }: SortOptions = {}): Tensor => {
    if (x.rank === 0) return ofScalar("argsort", x, axis).indices;
    const size = x.shape[axisOf("argsort", x, axis)] as number;
    if (size === 0) return x.runtime.tensor(new Uint32Array(0), x.shape);
    return noGrad(() => topK(x, size, { axis, largest: descending }).indices);
  },
);

const medianAlong: AlongAxis = alongAxis("median", (x, d) =>
  noGrad(() => {
    const size = x.shape[d] as number;
    if (size === 0) throw new ShapeError(`median: axis ${d} of [${x.shape}] has no elements`);
    const half = Math.ceil(size / 2);
    const middle = narrow(argsort(x, { axis: d }), d, half - 1, 1);
    if (!isFloating(x.dtype)) return middle;
    return where(isNan(amax(x, d, { keepDimensions: true })), argmaxAlong(x, d, true), middle);
  }),
);

/** [x, median]: the median, whose gradient all elements that equal it share. */
const medianOp: Op<null> = defineOp<null>({
  name: "median",
  castPolicy: "none",
  shape: ([, value]) => [value as TensorSpec],
  forward: ({ target, inputs, outputs }) =>
    target.launch(
      kernels.elementwise(kernels.identity, [inputs[1] as Operand], outputs[0] as Operand),
    ),
  backward({ inputs, gradients }) {
    const [x, value] = inputs as [Tensor, Tensor];
    const isMedian = logicalOr(eq(x, value), logicalAnd(isNan(x), isNan(value)));
    const shares = castTo(isMedian, "float32");
    const g = castTo(gradients[0] as Tensor, "float32");
    return [shares.mul(g.div(sum(shares))), undefined];
  },
});

function medianOfAll(x: Tensor): Tensor {
  if (x.size === 0 && !isFloating(x.dtype))
    throw new ShapeError(`median: no integer is the median of [${x.shape}], which has no elements`);
  const value = noGrad(() => (x.size === 0 ? mean(x) : medianAlong(x.reshape([x.size]), 0).values));
  return medianOp.apply([x, value], null);
}

/** The calling forms of {@link median}. */
export interface Median {
  (x: Tensor): Tensor;
  (x: Tensor, axis: number, options?: KeepOptions): Extremum;
}

/**
 * The median along an axis, of an even number the lower of the two in the middle, and its index; NaN wins, as in torch. The gradient goes to
 * that element alone. Without an axis it is the median of all elements, without an index: equal ones share the gradient. That of no floating
 * numbers is NaN, as their mean.
 *
 * @throws ShapeError where the axis, or a tensor of integers, has no elements
 */
export const median: Median = checked(
  "median",
  {
    x: kinds.tensor,
    axis: kinds.optional(kinds.integer),
    options: kinds.optionals({ keepDimensions: kinds.flag }),
  },
  (x: Tensor, axis?: number, options?: KeepOptions): Tensor | Extremum =>
    axis === undefined ? medianOfAll(x) : medianAlong(x, axis, options),
) as Median;
