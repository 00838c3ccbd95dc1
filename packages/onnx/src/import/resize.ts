import type { Tensor } from "@halfstep/tensor";
import * as ops from "@halfstep/tensor";
import type { Call, OnnxValue } from "./call.js";
import { fromLast, toLast } from "./layout.js";

type Size = readonly [height: number, width: number];
type Resample = (image: Tensor, size: Size) => Tensor;

const nearest = (image: Tensor, size: Size): Tensor => ops.upsampleNearest2d(image, { size });
const nearestExact = (image: Tensor, size: Size): Tensor =>
  ops.upsampleNearest2d(image, { size, exact: true });

/** Ways to resample that torch has, by mode and how places are computed. */
const ways: Readonly<Record<string, Resample>> = {
  "nearest asymmetric floor": nearest,
  "nearest half_pixel round_prefer_ceil": nearestExact,
  "linear half_pixel": (image, size) => ops.upsampleBilinear2d(image, { size }),
  "linear align_corners": (image, size) =>
    ops.upsampleBilinear2d(image, { size, alignCorners: true }),
  "cubic half_pixel": (image, size) => ops.upsampleBicubic2d(image, { size }),
  "cubic align_corners": (image, size) =>
    ops.upsampleBicubic2d(image, { size, alignCorners: true }),
};

/** Whole multiples take the same pixels, however places between two are rounded. */
const isMultiple = (size: Size, before: Size): boolean =>
  size.every((length, d) => length % (before[d] as number) === 0);

/** The sizes of the result, of which those of batch and channels stay. */
function sizesOf(call: Call): Size {
  const shape = call.shapeOf(0);
  if (shape.length !== 4) throw call.unsupported("other than two dimensions of images");
  if (call.numbers("axes")) throw call.unsupported("axes");
  const sizes = call.has(3)
    ? call.list(3, "sizes")
    : call.list(2, "scales").map((scale, d) => scale * (shape[d] as number));
  const [batch, channels, height = 0, width = 0] = sizes;
  if (sizes.length !== 4 || batch !== shape[0] || channels !== shape[1])
    throw call.unsupported(`sizes [${sizes}] for [${shape}]`);
  if (![height, width].every((size) => Number.isSafeInteger(size) && size > 0))
    throw call.unsupported(`scales that give no whole sizes, but [${sizes}]`);
  return [height, width];
}

/** Resize, as torch's interpolate() writes it. */
export function resize(call: Call): OnnxValue {
  for (const name of ["antialias", "exclude_outside"])
    if (call.number(name, 0) !== 0) throw call.unsupported(name);
  const size = sizesOf(call);
  const before = call.shapeOf(0).slice(2) as unknown as Size;
  const mode = call.text("mode", "nearest");
  const given = call.text("coordinate_transformation_mode", "half_pixel");
  // They differ where the result has one pixel alone.
  const isSame = given === "pytorch_half_pixel" && size.every((length) => length > 1);
  const places = isSame ? "half_pixel" : given;
  const rounding = call.text("nearest_mode", "round_prefer_floor");
  const isRounded = mode === "nearest" && places === "half_pixel" && /^round_/.test(rounding);
  const way =
    isRounded && isMultiple(size, before)
      ? nearest
      : ways[[mode, places, ...(mode === "nearest" ? [rounding] : [])].join(" ")];
  if (!way || (mode === "cubic" && Math.abs(call.number("cubic_coeff_a", -0.75) + 0.75) > 1e-6))
    throw call.unsupported(`mode ${mode}, places by ${given}, ${rounding}`);
  return fromLast(way(toLast(call.tensor(0)), size));
}
