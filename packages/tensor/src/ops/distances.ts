import * as kinds from "../arguments/kinds.js";
import { castTo } from "../dispatch/cast.js";
import { type Composite, composite } from "../dispatch/composite.js";
import { ShapeError } from "../errors.js";
import type { Tensor } from "../tensor/tensor.js";
import { clamp } from "./activations.js";
import { gt, keepWhere } from "./comparison.js";
import { indexSelect } from "./indexing.js";
import { inFloat32 } from "./precision.js";
import { amaxToEach } from "./reduce.js";
import { linalgVectorNorm } from "./statistics.js";
import { sum } from "./sums.js";
import { reciprocal } from "./transcendental.js";
import { axisOf } from "./windows.js";

/** The p-norm over an axis, by default the last. */
const normAlong = (x: Tensor, p: number, axis = -1): Tensor =>
  linalgVectorNorm(x, { ord: p, axes: axis });

/** The same of the differences of rows. Where p is infinite, every largest one has the whole gradient, as in torch. */
const distanceOf = (difference: Tensor, p: number): Tensor =>
  p === Number.POSITIVE_INFINITY
    ? inFloat32(difference, (x) => amaxToEach(x.abs()))
    : normAlong(difference, p);

/** max(x, least). Gradients pass through also where `least` is taken, as where torch clamps without recording. */
export const atLeast = (x: Tensor, least: number): Tensor =>
  x.add(clamp(x, { min: least }).sub(x).detach());

/** Options of {@link cosineSimilarity}. */
export interface CosineSimilarityOptions {
  /** Default 1, as in torch. */
  readonly axis?: number;
  /** Lower bound of the divisor. Default 1e-8. */
  readonly eps?: number;
}

/** Cosine of the angles between vectors along an axis, as torch.nn.functional.cosine_similarity. The operands broadcast. */
export const cosineSimilarity: Composite<
  (a: Tensor, b: Tensor, options?: CosineSimilarityOptions) => Tensor
> = composite(
  {
    name: "cosineSimilarity",
    castPolicy: "float32",
    parameters: {
      a: kinds.tensor,
      b: kinds.tensor,
      options: kinds.optionals({ axis: kinds.integer, eps: kinds.number }),
    },
  },
  (a: Tensor, b: Tensor, { axis = 1, eps = 1e-8 }: CosineSimilarityOptions = {}): Tensor => {
    const dot = a.mul(b);
    const position = axis < 0 ? axis + dot.rank : axis;
    if (!(position in dot.shape))
      throw new ShapeError(
        `cosineSimilarity: axis ${axis} is none of the dimensions of [${dot.shape}]`,
      );
    // Counted from the end, since one of the two may have fewer dimensions.
    const fromEnd = position - dot.rank;
    const length = (x: Tensor): Tensor => {
      const size = dot.shape[position] as number;
      const whole = x.shape.at(fromEnd) === size ? x : x.expand(dot.shape);
      return atLeast(normAlong(whole, 2, fromEnd), eps);
    };
    return sum(dot, fromEnd).div(length(a).mul(length(b)));
  },
);

/** The p-norm of a − b, as torch.dist; the operands broadcast. */
export const dist: Composite<(a: Tensor, b: Tensor, p?: number) => Tensor> = composite(
  {
    name: "dist",
    castPolicy: "float32",
    parameters: { a: kinds.tensor, b: kinds.tensor, p: kinds.optional(kinds.number) },
  },
  (a: Tensor, b: Tensor, p = 2): Tensor => linalgVectorNorm(a.sub(b), { ord: p }),
);

/** The p-norm of the difference of every row of a [..., n, size] and every row of b [..., m, size]: [..., n, m], as torch.cdist. */
export const cdist: Composite<(a: Tensor, b: Tensor, p?: number) => Tensor> = composite(
  {
    name: "cdist",
    castPolicy: "float32",
    parameters: { a: kinds.tensor, b: kinds.tensor, p: kinds.optional(kinds.nonNegative) },
  },
  (a: Tensor, b: Tensor, p = 2): Tensor => {
    const size = a.shape.at(-1);
    if (a.rank < 2 || b.rank < 2 || size !== b.shape.at(-1))
      throw new ShapeError(
        `cdist needs [..., n, size] and [..., m, size], not [${a.shape}] and [${b.shape}]`,
      );
    const rows = a.reshape([...a.shape.slice(0, -1), 1, size as number]);
    const columns = b.reshape([...b.shape.slice(0, -2), 1, ...b.shape.slice(-2)]);
    return distanceOf(rows.sub(columns), p);
  },
);

/** The distances of the rows of x [n, size] from one another, [n (n − 1) / 2]: row i from rows i + 1, …, for each i; torch.pdist. */
export const pdist: Composite<(x: Tensor, p?: number) => Tensor> = composite(
  {
    name: "pdist",
    castPolicy: "float32",
    parameters: { x: kinds.tensor, p: kinds.optional(kinds.nonNegative) },
  },
  (x: Tensor, p = 2): Tensor => {
    if (x.rank !== 2) throw new ShapeError(`pdist needs rows [n, size], not [${x.shape}]`);
    const n = x.shape[0] as number;
    const pairs = Array.from({ length: n }, (_, i) =>
      Array.from({ length: n - 1 - i }, (__, j) => [i, i + 1 + j] as const),
    ).flat();
    const rows = (side: 0 | 1): Tensor =>
      indexSelect(x, 0, x.runtime.tensor(Uint32Array.from(pairs, (pair) => pair[side])));
    return distanceOf(rows(0).sub(rows(1)), p);
  },
);

/** Slices of x along an axis, scaled so that none has a p-norm above `maxNorm`, as torch.renorm. */
export const renorm: Composite<(x: Tensor, p: number, axis: number, maxNorm: number) => Tensor> =
  composite(
    {
      name: "renorm",
      castPolicy: "float32",
      parameters: {
        x: kinds.tensor,
        p: kinds.positive,
        axis: kinds.integer,
        maxNorm: kinds.nonNegative,
      },
    },
    (x: Tensor, p: number, axis: number, maxNorm: number): Tensor => {
      const d = axisOf("renorm", x, axis);
      const axes = [...x.shape.keys()].filter((other) => other !== d);
      const lengths = linalgVectorNorm(x, { ord: p, axes, keepDimensions: true });
      const factors = reciprocal(lengths.add(1e-7)).mul(maxNorm);
      return x.mul(keepWhere(factors.sub(1), gt(lengths, maxNorm)).add(1));
    },
  );

/** The p-norm of a − b + eps along the last axis: torch's pairwise distance, in float32. */
export const pairwiseDistance = (a: Tensor, b: Tensor, p: number, eps: number): Tensor =>
  normAlong(castTo(a, "float32").sub(castTo(b, "float32")).add(eps), p);
