import { identity } from "@halfstep/kernels";
import { checked } from "../arguments/arguments.js";
import * as kinds from "../arguments/kinds.js";
import type { UnaryOp } from "../dispatch/op.js";
import { ShapeError } from "../errors.js";
import type { Tensor } from "../tensor/tensor.js";
import { unary } from "./pointwise.js";
import { expand, reshape } from "./shape.js";

/** A copy of x in memory of its own. Gradients flow through it; `detach()` gives a view without. */
export const clone: UnaryOp = unary(identity, "none", (g) => g, { name: "clone", integers: true });

/**
 * x one after the other so many times along each dimension, as torch's `repeat`: further counts than x has dimensions come first, and make
 * new ones.
 */
export const repeat: (x: Tensor, counts: readonly number[]) => Tensor = checked(
  "repeat",
  { x: kinds.tensor, counts: kinds.integers },
  (x: Tensor, counts: readonly number[]): Tensor => {
    const lead = counts.length - x.rank;
    if (lead < 0)
      throw new ShapeError(`repeat: [${x.shape}] needs at least ${x.rank} counts, not [${counts}]`);
    if (counts.some((count) => count < 0))
      throw new ShapeError(`repeat: counts are 0 or more, not [${counts}]`);
    const shape = counts.map((_, d) => x.shape[d - lead] ?? 1);
    const apart = reshape(
      x,
      shape.flatMap((size) => [1, size]),
    );
    const repeated = expand(
      apart,
      shape.flatMap((size, d) => [counts[d] as number, size]),
    );
    return reshape(
      repeated,
      shape.map((size, d) => size * (counts[d] as number)),
    );
  },
);

/** As {@link repeat}, with counts for the last dimensions alone where there are fewer. */
export const tile: (x: Tensor, counts: readonly number[]) => Tensor = checked(
  "tile",
  { x: kinds.tensor, counts: kinds.integers },
  (x: Tensor, counts: readonly number[]): Tensor =>
    repeat(x, [...Array<number>(Math.max(0, x.rank - counts.length)).fill(1), ...counts]),
);
