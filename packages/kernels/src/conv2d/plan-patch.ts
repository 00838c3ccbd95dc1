import type { Conv2dAttributes } from "../conv2d.js";
import type { TilePlan } from "../matmul/shape.js";
import type { ImageSize } from "./launch.js";
import { type LineShape, linePatch } from "./line-patch.js";
import type { Patch } from "./patch.js";
import { squarePatch } from "./square-patch.js";

/**
 * How CPU adapters compute windows of 3×3 that move one pixel at a time, by shape alone: `undefined` where tiles are faster.
 *
 * @param image height and width of the result
 */
export function planPatch(
  attributes: Conv2dAttributes,
  { rows, width, isAligned, columns }: TilePlan,
  image: ImageSize,
): Patch | undefined {
  const { kernelHeight, kernelWidth, stride, dilation, groups = 1 } = attributes;
  const isPlain = [...stride, ...dilation, groups].every((step) => step === 1);
  if (!isPlain || kernelHeight !== 3 || kernelWidth !== 3 || !isAligned || rows !== 32)
    return undefined;
  return width === 2 ? planSquares(attributes, image) : planLines(attributes, columns, image);
}

function planSquares(
  { inChannels }: Conv2dAttributes,
  [height, width]: ImageSize,
): Patch | undefined {
  const used = (size: number): number => usedPart([height, width], { height: size, width: size });
  const size = used(7) > used(8) ? 7 : 8;
  // Tiles load each pixel of few channels one by one, nine times.
  return used(size) >= (inChannels < 4 ? 0.7 : 0.95) ? squarePatch(size) : undefined;
}

/** Whole lines of narrow images; of others so many pixels as fill two registers with their neighbours. */
const lineShapes: readonly LineShape[] = [
  { height: 8, width: 8, isWhole: true },
  { height: 2, width: 16, isWhole: true },
  { height: 4, width: 14, isWhole: false },
];

/** Fewer patches than this leave a device idle that tiles keep busy, and do not repay a longer compilation. */
const fewPatches = 64;

function planLines(
  { batch, width: sourceWidth, padding }: Conv2dAttributes,
  columns: number,
  image: ImageSize,
): Patch | undefined {
  const isSame = padding[1] === 1 && sourceWidth === image[1];
  const shape = lineShapes.find(
    (shape) =>
      (shape.isWhole ? isSame && image[1] === shape.width : true) && usedPart(image, shape) >= 0.95,
  );
  if (!shape) return undefined;
  const patches = (batch * image[0] * image[1]) / (shape.height * shape.width);
  return patches * Math.ceil(columns / 8) >= fewPatches ? linePatch(shape) : undefined;
}

/** How much of what patches cover is image. */
const usedPart = (
  [height, width]: ImageSize,
  patch: { readonly height: number; readonly width: number },
): number =>
  (height * width) /
  (Math.ceil(height / patch.height) * Math.ceil(width / patch.width) * patch.height * patch.width);
