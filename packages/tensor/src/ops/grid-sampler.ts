import * as kinds from "../arguments/kinds.js";
import { noGrad } from "../autograd/grad-mode.js";
import { castTo } from "../dispatch/cast.js";
import { type Composite, composite } from "../dispatch/composite.js";
import { ShapeError } from "../errors.js";
import type { Tensor } from "../tensor/tensor.js";
import { clamp, hardtanh } from "./activations.js";
import { ge, keepWhere, le, logicalAnd, where } from "./comparison.js";
import { floor, round } from "./elementwise.js";
import { indexSelect, placeIn } from "./indexing.js";
import { inFloat32 } from "./precision.js";
import { unsqueeze } from "./shape.js";
import { select } from "./windows.js";

/** Options of {@link gridSampler}. */
export interface GridSamplerOptions {
  /** Interpolation between the four pixels around a place, or the nearest pixel. Default "bilinear". */
  readonly mode?: "bilinear" | "nearest";
  /** Values outside the image: zeros, its border, or the mirrored image. Default "zeros". */
  readonly padding?: "zeros" | "border" | "reflection";
  /** Whether −1 and 1 are the centres of the outermost pixels, or their outer edges. Default false. */
  readonly alignCorners?: boolean;
}

/** A column or row of pixels that places read, and its weight. */
interface Tap {
  readonly place: Tensor;
  readonly weight: Tensor | undefined;
}

function tapsOf(x: Tensor, mode: "bilinear" | "nearest"): readonly Tap[] {
  if (mode === "nearest") return [{ place: noGrad(() => round(x)), weight: undefined }];
  const low = noGrad(() => floor(x));
  const weight = x.sub(low);
  return [
    { place: low, weight: weight.neg().add(1) },
    { place: noGrad(() => low.add(1)), weight },
  ];
}

const product = (a: Tensor | undefined, b: Tensor | undefined): Tensor | undefined =>
  a && b ? a.mul(b) : (a ?? b);

/**
 * torch.nn.functional.grid_sample: an image [batch, height, width, channels] read at the places of a grid [batch, rows, columns, 2],
 * which are (x, y) from −1 to 1. The result is [batch, rows, columns, channels]. Heights and widths are up to 2^24. Bilinear values of a
 * place that is NaN or infinite are NaN.
 */
export const gridSampler: Composite<
  (image: Tensor, grid: Tensor, options?: GridSamplerOptions) => Tensor
> = composite(
  {
    name: "gridSampler",
    castPolicy: "promote",
    parameters: {
      image: kinds.tensor,
      grid: kinds.tensor,
      options: kinds.optionals({
        mode: kinds.oneOf("bilinear", "nearest"),
        padding: kinds.oneOf("zeros", "border", "reflection"),
        alignCorners: kinds.flag,
      }),
    },
  },
  (image: Tensor, grid: Tensor, options: GridSamplerOptions = {}): Tensor => {
    if (
      image.rank !== 4 ||
      grid.rank !== 4 ||
      grid.shape[3] !== 2 ||
      grid.shape[0] !== image.shape[0]
    )
      throw new ShapeError(
        `gridSampler needs an image [batch, height, width, channels] and a grid [batch, rows, columns, 2], not [${image.shape}] and [${grid.shape}]`,
      );
    return inFloat32(image, (pixels) => sample(pixels, castTo(grid, "float32"), options));
  },
);

function sample(
  image: Tensor,
  grid: Tensor,
  { mode = "bilinear", padding = "zeros", alignCorners = false }: GridSamplerOptions,
): Tensor {
  const [batch, height, width, channels] = image.shape as [number, number, number, number];
  const along = (coordinate: number, size: number): readonly Tap[] => {
    const unit = select(grid, -1, coordinate).add(1);
    const place = alignCorners ? unit.mul((size - 1) / 2) : unit.mul(size / 2).sub(0.5);
    const mirrored =
      padding === "reflection" ? reflected(place, size, alignCorners ? 0 : -0.5) : place;
    // As in torch, a place on the border has no gradient: the slope of hardtanh at its ends is 0.
    const inside = (): Tensor => hardtanh(mirrored, { min: 0, max: size - 1 });
    return tapsOf(padding === "zeros" ? place : inside(), mode);
  };
  const isInside = (row: Tap, column: Tap): Tensor =>
    logicalAnd(within(row.place, height), within(column.place, width));
  const entries = image.runtime.tensor(
    Uint32Array.from({ length: batch }, (_, n) => n),
    [batch, 1, 1],
  );
  const pixels = image.reshape([batch * height * width, channels]);
  const terms = along(1, height).flatMap((row) =>
    along(0, width).map((column) => {
      const index = noGrad(() => {
        const y = castTo(clamp(row.place, { min: 0, max: height - 1 }), "uint32");
        const x = castTo(clamp(column.place, { min: 0, max: width - 1 }), "uint32");
        const rowOf = placeIn(entries, y, { places: batch, size: height });
        return placeIn(rowOf, x, { places: batch * height, size: width });
      });
      const found = indexSelect(pixels, 0, index.reshape([-1])).reshape([...index.shape, channels]);
      // Zeros before the weight, so that a weight of NaN, from a place that is not finite, makes the value NaN as in torch.
      const values =
        padding === "zeros" ? keepWhere(found, unsqueeze(isInside(row, column), -1)) : found;
      const weight = product(row.weight, column.weight);
      return weight ? values.mul(unsqueeze(weight, -1)) : values;
    }),
  );
  return terms.reduce((sum, term) => sum.add(term));
}

/** Places mirrored at `first` and, symmetrically, behind the last pixel, until they are inside. */
function reflected(place: Tensor, size: number, first: number): Tensor {
  const span = size - 1 - 2 * first;
  if (span === 0) return place.mul(0);
  const distance = place.sub(first).abs();
  const times = noGrad(() => floor(distance.div(span)));
  const extra = distance.sub(times.mul(span));
  const isOdd = noGrad(() => times.sub(floor(times.mul(0.5)).mul(2)));
  return where(isOdd, extra.neg().add(span), extra).add(first);
}

const within = (place: Tensor, size: number): Tensor =>
  logicalAnd(ge(place, 0), le(place, size - 1));
