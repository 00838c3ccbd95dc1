import type { TilePlan } from "../matmul/shape.js";
import type { Conv2dAttributes } from "./attributes.js";
import type { ImageSize } from "./launch.js";
import { type LineShape, linePatch } from "./line-patch.js";
import type { Direction, Patch } from "./patch.js";
import { pixelRun } from "./pixel-run.js";
import { type SquareSize, squarePatch } from "./square-patch.js";
import { type StripShape, stripPatch } from "./strip-patch.js";

/**
 * How CPU adapters compute windows of 3×3 that move one pixel at a time, by shape alone: `undefined` where tiles are faster.
 *
 * @param image height and width of the result
 */
export const planPatch = (
  attributes: Conv2dAttributes,
  plan: TilePlan,
  image: ImageSize,
): Patch | undefined => choosePatch("forward", attributes, plan, image);

/**
 * The same for the gradient by the input: a convolution of the output's gradient by the window turned by 180°.
 *
 * @param outImage height and width of the output's gradient
 */
export function planTurnedPatch(
  attributes: Conv2dAttributes,
  plan: TilePlan,
  outImage: ImageSize,
): Patch | undefined {
  const { height, width, inChannels, outChannels, padding } = attributes;
  const turned: Conv2dAttributes = {
    ...attributes,
    height: outImage[0],
    width: outImage[1],
    inChannels: outChannels,
    outChannels: inChannels,
    padding: [2 - padding[0], 2 - padding[1]],
  };
  return choosePatch("backward", turned, plan, [height, width]);
}

/**
 * The same of the gradient by the weight.
 *
 * @param image height and width of the gradient by the result
 */
export function planRun(
  attributes: Conv2dAttributes,
  { width, isAligned }: TilePlan,
  image: ImageSize,
): Patch | undefined {
  const { batch, inChannels, outChannels, padding } = attributes;
  const isSame = padding[0] === 1 && padding[1] === 1;
  const isFew = inChannels < 4;
  if (!isPlain(attributes) || !isSame || !isAligned || (!isFew && inChannels % 16 !== 0))
    return undefined;
  const hasLines = image[1] >= (isFew ? 8 : 4);
  return hasLines && batch * image[0] * image[1] * outChannels >= fewGradients
    ? pixelRun(inChannels, width)
    : undefined;
}

/** Numbers of gradients by the result up to which a longer compilation does not pay. */
const fewGradients = 2 ** 17;

function choosePatch(
  direction: Direction,
  attributes: Conv2dAttributes,
  { rows, width, isAligned, columns }: TilePlan,
  image: ImageSize,
): Patch | undefined {
  if (!isPlain(attributes) || !isAligned || rows !== 32) return undefined;
  const { inChannels } = attributes;
  const strips = chooseStrips(attributes);
  if (strips) return stripPatch(strips, direction);
  if (direction === "backward" && inChannels % 4 !== 0) return undefined;
  if (width === 4) {
    const shape = chooseLines(direction, attributes, columns, image);
    return shape && linePatch(shape, direction);
  }
  // Tiles load each pixel of few channels one by one, nine times.
  const size = chooseSquares(image, inChannels < 4 ? 0.7 : 0.95);
  return size && squarePatch(size, { direction, isQuads: inChannels % 4 === 0 });
}

function isPlain(attributes: Conv2dAttributes): boolean {
  const { kernelHeight, kernelWidth, stride, dilation, groups = 1 } = attributes;
  const steps = [...stride, ...dilation, groups];
  return steps.every((step) => step === 1) && kernelHeight === 3 && kernelWidth === 3;
}

const mostChannels = 8;
const mostColumns = 32;
/** Blocks of fewer columns spend as much time on loads as on products. */
const fewColumns = 8;
/** With more weights on the stack, some leave the first-level cache. */
const mostWeights = 1008;

/** Strips with the smallest number of blocks of columns. */
function chooseStrips({
  inChannels: channels,
  outChannels,
  padding,
}: Conv2dAttributes): StripShape | undefined {
  if (channels < 1 || channels > mostChannels || padding[1] < 1) return undefined;
  const most = Math.min(mostColumns, mostWeights / (9 * channels));
  let columns = Math.floor(most / 4) * 4;
  while (columns > 0 && outChannels % columns > 0) columns -= 4;
  const isWide = columns >= fewColumns || columns === outChannels;
  return isWide ? { channels, columns } : undefined;
}

/** Squares of which at least this part covers the image. */
function chooseSquares(image: ImageSize, least: number): SquareSize | undefined {
  const used = (size: number): number => usedPart(image, { height: size, width: size });
  const size = used(7) > used(8) ? 7 : 8;
  return used(size) >= least ? size : undefined;
}

/**
 * Whole lines of narrow images; of wider ones as many pixels as fill two registers together with their neighbours. The gain over tiles is
 * largest with few channels.
 */
const lineShapes: readonly (LineShape & { readonly mostChannels?: number })[] = [
  { height: 8, width: 8, isWhole: true },
  { height: 2, width: 16, isWhole: true },
  { height: 7, width: 7, isWhole: true },
  { height: 2, width: 14, isWhole: true, mostChannels: 32 },
  { height: 4, width: 14, isWhole: false },
];

/** Fewer patches than this leave a device idle where tiles keep it busy, and a longer compilation does not pay. */
const fewPatches = 64;

function chooseLines(
  direction: Direction,
  { batch, width: sourceWidth, padding, inChannels }: Conv2dAttributes,
  columns: number,
  image: ImageSize,
): LineShape | undefined {
  const isSame = padding[1] === 1 && sourceWidth === image[1];
  const shape = lineShapes.find(
    (shape) =>
      (!shape.isWhole || (isSame && image[1] === shape.width)) &&
      // Extracting the weights of a turned window costs as much as the products of two lines.
      (direction === "forward" || shape.height > 2) &&
      inChannels <= (shape.mostChannels ?? Number.POSITIVE_INFINITY) &&
      usedPart(image, shape) >= 0.95,
  );
  if (!shape) return undefined;
  const patches = (batch * image[0] * image[1]) / (shape.height * shape.width);
  return patches * Math.ceil(columns / 8) >= fewPatches ? shape : undefined;
}

/** The part of the patches' pixels that lies in the image. */
const usedPart = (
  [height, width]: ImageSize,
  patch: { readonly height: number; readonly width: number },
): number =>
  (height * width) /
  (Math.ceil(height / patch.height) * Math.ceil(width / patch.width) * patch.height * patch.width);
