import { checked } from "../arguments/arguments.js";
import { isTensor } from "../arguments/is-tensor.js";
import * as kinds from "../arguments/kinds.js";
import { ShapeError } from "../errors.js";
import type { Tensor } from "../tensor/tensor.js";
import { flatIndex, indexSelect } from "./indexing.js";
import { permute, reshape } from "./shape.js";
import { type SliceOptions, select, slice } from "./windows.js";

/**
 * What is taken of one dimension: a number (one index, whose dimension is removed), `{ start, end, step }` (a slice), "all", or a tensor of
 * integers (the places that it names, in its shape). "new" takes no dimension and inserts one of size 1; "..." takes as many as other parts leave.
 */
export type IndexPart = number | SliceOptions | "all" | "new" | "..." | Tensor;

/**
 * What Python writes in brackets, one part for each dimension from the first on: `x[2, 1:5, :, ids]` is
 * `index(x, [2, { start: 1, end: 5 }, "all", ids])`. Dimensions without a part are taken whole. Negative numbers count from the end, also in
 * int32 tensors; what is out of range in a tensor gives NaN. Several tensors broadcast, and name elements together: `scores[rows, labels]`.
 * A tensor of shape [] is one index, like a number.
 * A mask is a tensor of zeros and ones here: for the elements that it names take `nonzero` or `where`.
 */
export const index: (x: Tensor, parts: readonly IndexPart[]) => Tensor = checked(
  "index",
  { x: kinds.tensor, parts: kinds.list },
  (x: Tensor, parts: readonly IndexPart[]): Tensor => {
    let result = x;
    let axis = 0;
    const named: NamedPlaces[] = [];
    for (const part of withoutEllipsis(x, parts)) {
      if (typeof part === "number") {
        result = select(result, axis, part);
        continue;
      }
      if (isTensor(part) && part.rank === 0) {
        // As a number, so that it does not move the dimensions that other tensors name.
        result = placesNamed(result, [{ axis, places: part }]);
        continue;
      }
      if (part === "new") result = reshape(result, result.shape.toSpliced(axis, 0, 1));
      else if (isTensor(part)) named.push({ axis, places: part });
      else if (part !== "all") result = slice(result, axis, part);
      axis++;
    }
    return named.length === 0 ? result : placesNamed(result, named);
  },
);

type Part = Exclude<IndexPart, "...">;

/** The parts with "all" for each dimension that "..." takes. */
function withoutEllipsis({ shape }: Tensor, parts: readonly IndexPart[]): readonly Part[] {
  const isEllipsis = (part: IndexPart): part is "..." => part === "...";
  const taken = parts.filter((part) => part !== "new" && !isEllipsis(part)).length;
  if (taken > shape.length || parts.filter(isEllipsis).length > 1)
    throw new ShapeError(
      `index: ${taken} parts, and "..." once at most, do not fit the dimensions of [${shape}]`,
    );
  const others = Array<"all">(shape.length - taken).fill("all");
  return parts.flatMap((part): readonly Part[] => (isEllipsis(part) ? others : [part]));
}

interface NamedPlaces {
  readonly axis: number;
  readonly places: Tensor;
}

/**
 * The elements that tensors name in some dimensions together. The dimensions of the places take theirs, or come first where they are apart, as in
 * torch.
 */
function placesNamed(x: Tensor, named: readonly NamedPlaces[]): Tensor {
  const axes = named.map(({ axis }) => axis);
  const first = axes[0] as number;
  const areApart = axes.some((axis, k) => axis !== first + k);
  const others = x.shape.map((_, d) => d).filter((d) => !axes.includes(d));
  const joined = areApart ? permute(x, [...axes, ...others]) : x;
  const at = areApart ? 0 : first;
  const dimensions = joined.shape.slice(at, at + axes.length);
  const [flat, places] = flatIndex(
    "index",
    named.map((each) => each.places),
    dimensions,
  );
  const size = dimensions.reduce((a, b) => a * b, 1);
  const lines = reshape(joined, joined.shape.toSpliced(at, axes.length, size));
  const taken = indexSelect(lines, at, flat);
  return reshape(taken, taken.shape.toSpliced(at, 1, ...places));
}
