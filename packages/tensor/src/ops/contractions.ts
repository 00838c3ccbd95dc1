import * as kinds from "../arguments/kinds.js";
import { type Composite, composite } from "../dispatch/composite.js";
import { ShapeError } from "../errors.js";
import { sizeOf } from "../shapes.js";
import type { Tensor } from "../tensor/tensor.js";
import { roll } from "./concatenate.js";
import { matmul } from "./matmul.js";
import { broadcastShapes } from "./pointwise.js";
import { inFloat32 } from "./precision.js";
import { sum } from "./sums.js";
import { axesOf, axisOf } from "./windows.js";

type Product = Composite<(a: Tensor, b: Tensor) => Tensor>;

const scalarProduct = (name: string): Product =>
  composite(
    { name, castPolicy: "promote", parameters: { a: kinds.tensor, b: kinds.tensor } },
    (a: Tensor, b: Tensor): Tensor => {
      if (a.rank !== 1 || b.rank !== 1 || a.size !== b.size)
        throw new ShapeError(
          `${name} needs two vectors of one length, not [${a.shape}] and [${b.shape}]`,
        );
      return inFloat32(a, (x) => sum(x.mul(b)));
    },
  );

/** Σ aᵢ bᵢ of two vectors, summed in float32. */
export const dot: Product = scalarProduct("dot");
/** {@link dot} under torch's name for vectors that may be complex; here all are real. */
export const vdot: Product = scalarProduct("vdot");

/** The cross product along an axis of size 3, as torch.linalg.cross. Other axes broadcast. */
export const cross: Composite<(a: Tensor, b: Tensor, axis?: number) => Tensor> = composite(
  {
    name: "cross",
    castPolicy: "promote",
    parameters: { a: kinds.tensor, b: kinds.tensor, axis: kinds.optional(kinds.integer) },
  },
  (a: Tensor, b: Tensor, axis = -1): Tensor => {
    const d = axisOf("cross", a, axis);
    if (a.rank !== b.rank || a.shape[d] !== 3 || b.shape[d] !== 3)
      throw new ShapeError(
        `cross needs two tensors of one rank with size 3 along axis ${axis}, not [${a.shape}] and [${b.shape}]`,
      );
    broadcastShapes("cross", a.shape, b.shape);
    const next = (x: Tensor): Tensor => roll(x, -1, d);
    const last = (x: Tensor): Tensor => roll(x, 1, d);
    return next(a)
      .mul(last(b))
      .sub(last(a).mul(next(b)));
  },
);

/** The sum of products over pairs of axes: as many of the last of a and the first of b, or those named. */
export const tensordot: Composite<
  (a: Tensor, b: Tensor, axes?: number | readonly [readonly number[], readonly number[]]) => Tensor
> = composite(
  {
    name: "tensordot",
    castPolicy: "promote",
    parameters: {
      a: kinds.tensor,
      b: kinds.tensor,
      axes: kinds.optional(kinds.either(kinds.integer, kinds.list)),
    },
  },
  (
    a: Tensor,
    b: Tensor,
    axes: number | readonly [readonly number[], readonly number[]] = 2,
  ): Tensor => {
    const [overA, overB] =
      typeof axes === "number"
        ? [
            Array.from({ length: axes }, (_, i) => a.rank - axes + i),
            Array.from({ length: axes }, (_, i) => i),
          ]
        : [[...axesOf("tensordot", a, axes[0])], [...axesOf("tensordot", b, axes[1])]];
    const sizes = (x: Tensor, over: readonly number[]): number[] =>
      over.map((d) => x.shape[d] as number);
    if (sizes(a, overA).join() !== sizes(b, overB).join())
      throw new ShapeError(
        `tensordot: axes [${overA}] of [${a.shape}] and [${overB}] of [${b.shape}] differ in size`,
      );
    const free = (x: Tensor, over: readonly number[]): number[] =>
      x.shape.map((_, d) => d).filter((d) => !over.includes(d));
    const [freeA, freeB] = [free(a, overA), free(b, overB)];
    const [m, n, k] = [sizes(a, freeA), sizes(b, freeB), sizes(a, overA)];
    const rows = a.permute([...freeA, ...overA]).reshape([sizeOf(m), sizeOf(k)]);
    const columns = b.permute([...overB, ...freeB]).reshape([sizeOf(k), sizeOf(n)]);
    return matmul(rows, columns).reshape([...m, ...n]);
  },
);

/** y_o = Σ x1_i weight[o, i, j] x2_j + bias_o, of x1 [..., i] and x2 [..., j], as torch.nn.functional.bilinear. */
export const bilinear: Composite<
  (x1: Tensor, x2: Tensor, weight: Tensor, bias?: Tensor) => Tensor
> = composite(
  {
    name: "bilinear",
    castPolicy: "promote",
    parameters: {
      x1: kinds.tensor,
      x2: kinds.tensor,
      weight: kinds.tensor,
      bias: kinds.optional(kinds.tensor),
    },
  },
  (x1: Tensor, x2: Tensor, weight: Tensor, bias?: Tensor): Tensor => {
    const [out, left, right] = weight.shape as [number, number, number];
    if (weight.rank !== 3 || x1.shape.at(-1) !== left || x2.shape.at(-1) !== right)
      throw new ShapeError(
        `bilinear: x1 [${x1.shape}] and x2 [${x2.shape}] do not fit a weight [${weight.shape}] of [out, left, right]`,
      );
    const lead = x1.shape.slice(0, -1);
    const [count, others] = [sizeOf(lead), sizeOf(x2.shape.slice(0, -1))];
    const rows = x1.reshape([count, left]);
    const byLeft = weight.permute([1, 0, 2]).reshape([left, out * right]);
    const half = matmul(rows, byLeft).reshape([count, out, right]);
    const full = matmul(half, x2.reshape([others, right, 1]));
    const y = full.reshape([...lead, out]);
    return bias ? y.add(bias) : y;
  },
);
