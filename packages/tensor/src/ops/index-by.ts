import { checked } from "../arguments/arguments.js";
import { isTensor } from "../arguments/is-tensor.js";
import * as kinds from "../arguments/kinds.js";
import { ShapeError } from "../errors.js";
import type { Tensor } from "../tensor/tensor.js";
import { indexSelect } from "./indexing.js";
import { reshape } from "./shape.js";
import { type SliceOptions, select, slice } from "./windows.js";

/**
 * What is taken of one dimension: a number (one index, whose dimension is removed), `{ start, end, step }` (a slice), "all", a uint32 tensor
 * of one dimension (the places that it names), or "new", which takes no dimension and inserts one of size 1.
 */
export type IndexPart = number | SliceOptions | "all" | "new" | Tensor;

/**
 * What Python writes in brackets, one part for each dimension from the first on: `x[2, 1:5, :, ids]` is
 * `index(x, [2, { start: 1, end: 5 }, "all", ids])`. Dimensions without a part are taken whole. Negative numbers count from the end.
 */
export const index: (x: Tensor, parts: readonly IndexPart[]) => Tensor = checked(
  "index",
  { x: kinds.tensor, parts: kinds.list },
  (x: Tensor, parts: readonly IndexPart[]): Tensor => {
    const taken = parts.filter((part) => part !== "new").length;
    if (taken > x.rank)
      throw new ShapeError(`index: ${taken} parts do not fit the dimensions of [${x.shape}]`);
    // Two lists of places name elements in torch, not a grid: that is `gather` or `indexPut`.
    if (parts.filter(isTensor).length > 1)
      throw new ShapeError("index: only one part may be a tensor; use gather() for more");
    let result = x;
    let axis = 0;
    for (const part of parts) {
      if (typeof part === "number") {
        result = select(result, axis, part);
        continue;
      }
      if (part === "new") result = reshape(result, result.shape.toSpliced(axis, 0, 1));
      else if (isTensor(part)) result = indexSelect(result, axis, part);
      else if (part !== "all") result = slice(result, axis, part);
      axis++;
    }
    return result;
  },
);
