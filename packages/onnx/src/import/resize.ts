import type { Tensor } from "@halfstep/tensor";
import * as ops from "@halfstep/tensor";
import type { Call, OnnxValue } from "./call.js";
import { fromLast, toLast } from "./layout.js";

type Size = readonly [height: number, width: number];
/** The size of the result, or the scale by which it follows from that of the image. */
type Wanted = { readonly size: Size } | { readonly scale: number };
type Resample = (image: Tensor, wanted: Wanted) => Tensor;

const nearest = (image: Tensor, wanted: Wanted): Tensor => ops.upsampleNearest2d(image, wanted);
const nearestExact = (image: Tensor, wanted: Wanted): Tensor =>
  ops.upsampleNearest2d(image, { ...wanted, exact: true });

/** Ways to resample that torch has, by mode and how places are computed. */
const ways: Readonly<Record<string, Resample>> = {
  "nearest asymmetric floor": nearest,
  "nearest half_pixel round_prefer_ceil": nearestExact,
  "linear half_pixel": (image, wanted) => ops.upsampleBilinear2d(image, wanted),
  "linear align_corners": (image, wanted) =>
    ops.upsampleBilinear2d(image, { ...wanted, alignCorners: true }),
  "cubic half_pixel": (image, wanted) => ops.upsampleBicubic2d(image, wanted),
  "cubic align_corners": (image, wanted) =>
    ops.upsampleBicubic2d(image, { ...wanted, alignCorners: true }),
};

/** Whole multiples take the same pixels, however places between two are rounded. */
const isMultiple = (size: Size, before: Size): boolean =>
  size.every((length, d) => length % (before[d] as number) === 0);

/** What the result has; the sizes of batch and channels stay. */
function wantedOf(call: Call): Wanted {
  const shape = call.shapeOf(0);
  if (shape.length !== 4) throw call.unsupported("other than two dimensions of images");
  if (call.numbers("axes")) throw call.unsupported("axes");
  const given = call.has(3) ? call.list(3, "sizes") : call.list(2, "scales");
  const kept = call.has(3) ? shape : [1, 1];
  if (given.length !== 4 || given[0] !== kept[0] || given[1] !== kept[1])
    throw call.unsupported(`${call.has(3) ? "sizes" : "scales"} [${given}] for [${shape}]`);
  const [height, width] = given.slice(2) as [number, number];
  const wanted = call.has(3) ? { size: [height, width] as const } : scaled(call, [height, width]);
  if ("size" in wanted && !wanted.size.every((size) => Number.isSafeInteger(size) && size > 0))
    throw call.unsupported(`an image of [${wanted.size}]`);
  return wanted;
}

/** What scales give, which runtimes multiply in float32 and round down. Where no size is rounded, places follow from the sizes. */
function scaled(call: Call, [vertical, horizontal]: Size): Wanted {
  const before = call.shapeOf(0).slice(2) as unknown as Size;
  const exact = [vertical * before[0], horizontal * before[1]] as const;
  const whole = [Math.round(exact[0]), Math.round(exact[1])] as const;
  if (exact.every((size, d) => Math.abs(size - (whole[d] as number)) <= 2 ** -22 * size))
    return { size: whole };
  const sizes = exact.map((size) => Math.floor(Math.fround(size)));
  // The number that the file has as a float32 may have had fewer digits.
  const scale = [Number(vertical.toPrecision(7)), vertical].find((each) =>
    before.every((size, d) => Math.floor(size * each) === sizes[d]),
  );
  if (vertical !== horizontal || scale === undefined)
    throw call.unsupported(`scales [${vertical}, ${horizontal}] that give no whole sizes`);
  return { scale };
}

/** Resize, as torch's interpolate() writes it. */
export function resize(call: Call): OnnxValue {
  for (const name of ["antialias", "exclude_outside"])
    if (call.number(name, 0) !== 0) throw call.unsupported(name);
  if (call.text("keep_aspect_ratio_policy", "stretch") !== "stretch")
    throw call.unsupported("keep_aspect_ratio_policy");
  const wanted = wantedOf(call);
  const before = call.shapeOf(0).slice(2) as unknown as Size;
  const mode = call.text("mode", "nearest");
  const given = call.text("coordinate_transformation_mode", "half_pixel");
  // They differ where the result has one pixel alone.
  const isOne = (d: 0 | 1): boolean =>
    "size" in wanted ? wanted.size[d] === 1 : Math.floor(wanted.scale * before[d]) === 1;
  const isSame = given === "pytorch_half_pixel" && !isOne(0) && !isOne(1);
  const places = isSame ? "half_pixel" : given;
  const rounding = call.text("nearest_mode", "round_prefer_floor");
  const isRounded = mode === "nearest" && places === "half_pixel" && /^round_/.test(rounding);
  const way =
    isRounded && "size" in wanted && isMultiple(wanted.size, before)
      ? nearest
      : ways[[mode, places, ...(mode === "nearest" ? [rounding] : [])].join(" ")];
  if (!way || (mode === "cubic" && Math.abs(call.number("cubic_coeff_a", -0.75) + 0.75) > 1e-6))
    throw call.unsupported(`mode ${mode}, places by ${given}, ${rounding}`);
  return fromLast(way(toLast(call.tensor(0)), wanted));
}
