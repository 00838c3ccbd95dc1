import { checked } from "../arguments/arguments.js";
import * as kinds from "../arguments/kinds.js";
import { ShapeError } from "../errors.js";
import type { Tensor } from "../tensor/tensor.js";
import { axisOf, cat, narrow } from "./windows.js";

/** Tensors of one shape along a new axis. */
export const stack: (tensors: readonly Tensor[], axis?: number) => Tensor = checked(
  "stack",
  { tensors: kinds.tensors, axis: kinds.optional(kinds.integer) },
  (tensors: readonly Tensor[], axis = 0): Tensor => {
    const [first] = tensors;
    if (!first) throw new ShapeError("stack needs at least one tensor");
    const d = axis < 0 ? axis + first.rank + 1 : axis;
    return cat(
      tensors.map((x) => x.reshape(x.shape.toSpliced(d, 0, 1))),
      d,
    );
  },
);

/**
 * Shifts the elements along each of the axes by as many places; those past the end wrap around to the start. Without axes all elements are one
 * line, as in torch.
 */
export const roll: (
  x: Tensor,
  by: number | readonly number[],
  axes?: number | readonly number[],
) => Tensor = checked(
  "roll",
  { x: kinds.tensor, by: kinds.axes, axes: kinds.optional(kinds.axes) },
  (x: Tensor, by: number | readonly number[], axes?: number | readonly number[]): Tensor => {
    if (axes === undefined) return roll(x.reshape([x.size]), by, 0).reshape(x.shape);
    const [places, along] = [[by].flat(), [axes].flat()];
    if (places.length !== along.length)
      throw new ShapeError(`roll: shifts [${places}] and axes [${along}] are not as many`);
    return along.reduce((rolled, axis, k) => rollAlong(rolled, places[k] as number, axis), x);
  },
);

function rollAlong(x: Tensor, by: number, axis: number): Tensor {
  const d = axisOf("roll", x, axis);
  const size = x.shape[d] as number;
  const start = size === 0 ? 0 : ((-by % size) + size) % size;
  if (start === 0) return x;
  return cat([narrow(x, d, start, size - start), narrow(x, d, 0, start)], d);
}
