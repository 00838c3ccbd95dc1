import { isFloating } from "@halfstep/formats/dtypes";
import { checked } from "../arguments/arguments.js";
import * as kinds from "../arguments/kinds.js";
import { noGrad } from "../autograd/grad-mode.js";
import type { Tensor } from "../tensor/tensor.js";
import { isNan, where } from "./comparison.js";
import { gather } from "./indexing.js";
import { amax } from "./reduce.js";
import { type AlongAxis, alongAxis, argmaxAlong, type Extremum } from "./statistics.js";
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
    const indices = argsort(x, options);
    return { values: gather(x, axisOf("sort", x, options.axis ?? -1), indices), indices };
  },
);

/** The indices that sort x along an axis, as uint32: those of {@link sort}. */
export const argsort: (x: Tensor, options?: SortOptions) => Tensor = checked(
  "argsort",
  parameters,
  (x: Tensor, { axis = -1, descending = false }: SortOptions = {}): Tensor => {
    const size = x.shape[axisOf("argsort", x, axis)] as number;
    if (size === 0) return x.runtime.tensor(new Uint32Array(0), x.shape);
    return noGrad(() => topK(x, size, { axis, largest: descending }).indices);
  },
);

/**
 * The median along an axis, of an even number the lower of the two in the middle, and its index; NaN wins, as in torch. The gradient goes to
 * that element alone.
 */
export const median: AlongAxis = alongAxis("median", (x, d) =>
  noGrad(() => {
    const half = Math.ceil((x.shape[d] as number) / 2);
    const middle = narrow(argsort(x, { axis: d }), d, half - 1, 1);
    if (!isFloating(x.dtype)) return middle;
    return where(isNan(amax(x, d, { keepDimensions: true })), argmaxAlong(x, d, true), middle);
  }),
);
