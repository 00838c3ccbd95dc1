import { castTo } from "../dispatch/cast.js";
import type { Op } from "../dispatch/op.js";
import type { Tensor } from "../tensor/tensor.js";
import { eq, keepWhere, logicalNot, lt, ne } from "./comparison.js";
import {
  type KeepOptions,
  type Reduce,
  type Reduction,
  type ReductionBackward,
  reduceOp,
  reduction,
  type SumOptions,
  typedReduction,
  untypedReduction,
} from "./reduction.js";
import { cumprod } from "./scan.js";
import { sum, sumOp } from "./sums.js";
import { shift } from "./windows.js";

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

/** Product over `axes`, in float32 under autocast unless a `dtype` is given; of integers modulo 2^32. */
export const prod: Reduce<SumOptions> = typedReduction("prod", prodOp);

/** Maximum over `axes`; NaN wins. Equal maxima share the gradient. */
export const amax: Reduce<KeepOptions> = untypedReduction("amax", maxOp, { needsElements: true });

/** Minimum over `axes`; NaN wins. Equal minima share the gradient. */
export const amin: Reduce<KeepOptions> = untypedReduction("amin", minOp, { needsElements: true });

/** Whether any number over `axes` is not 0, as a mask: 0 where there are none. */
export const any: Reduce<KeepOptions> = reduction("any", (x, axes, options) =>
  x.size === 0 ? sum(ne(x, 0), axes, options) : amax(ne(x, 0), axes, options),
);

/** Whether no number over `axes` is 0, as a mask: 1 where there are none. */
export const all: Reduce<KeepOptions> = reduction("all", (x, axes, options) =>
  x.size === 0 ? prod(ne(x, 0), axes, options) : amin(ne(x, 0), axes, options),
);
