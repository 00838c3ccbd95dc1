import { checked } from "../arguments/arguments.js";
import * as kinds from "../arguments/kinds.js";
import { castTo } from "../dispatch/cast.js";
import { ShapeError } from "../errors.js";
import type { Tensor } from "../tensor/tensor.js";
import { lt, where } from "./comparison.js";
import { mul } from "./elementwise.js";
import { floating } from "./floating.js";

/** The products of all pairs of two vectors, as a matrix [a, b]. */
export const outer: (a: Tensor, b: Tensor) => Tensor = checked(
  "outer",
  { a: kinds.tensor, b: kinds.tensor },
  (a: Tensor, b: Tensor): Tensor => {
    if (a.rank !== 1 || b.rank !== 1)
      throw new ShapeError(`outer needs two vectors, not [${a.shape}] and [${b.shape}]`);
    return mul(a.reshape([a.size, 1]), b);
  },
);

/**
 * a + weight · (b − a), which broadcast, computed in float32. From a weight of ½ on it is b − (b − a) · (1 − weight), as in torch, so that a
 * weight of 1 gives b.
 */
export const lerp: (a: Tensor, b: Tensor, weight: Tensor | number) => Tensor = checked(
  "lerp",
  { a: kinds.tensor, b: kinds.tensor, weight: kinds.either(kinds.tensor, kinds.number) },
  (a: Tensor, b: Tensor, weight: Tensor | number): Tensor => {
    for (const x of [a, b]) floating("lerp", x);
    const [from, to] = [castTo(a, "float32"), castTo(b, "float32")];
    const way = to.sub(from);
    const result = between(from, to, way, weight);
    return a.dtype === b.dtype ? castTo(result, a.dtype) : result;
  },
);

function between(from: Tensor, to: Tensor, way: Tensor, weight: Tensor | number): Tensor {
  if (typeof weight === "number")
    return Math.abs(weight) < 0.5 ? from.add(way.mul(weight)) : to.sub(way.mul(1 - weight));
  const part = castTo(weight, "float32");
  const isNear = lt(part.abs(), 0.5);
  return where(isNear, from.add(way.mul(part)), to.sub(way.mul(part.neg().add(1))));
}
