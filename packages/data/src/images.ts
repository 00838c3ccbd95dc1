import { DataError } from "./error.js";
import type { IdxArray } from "./idx.js";

/** Labelled grey images of one size. */
export interface ImageSet {
  /** [count, height, width], one byte a pixel. */
  readonly images: Uint8Array;
  /** [count], the class of each image. */
  readonly labels: Uint8Array;
  readonly count: number;
  /** Pixels. */
  readonly height: number;
  /** Pixels. */
  readonly width: number;
}

/**
 * Pairs an IDX file of images (uint8 [count, height, width]) with one of labels (uint8 [count]).
 * @param classes labels must be below this number
 * @throws DataError when a type, a shape, the two counts or a label is wrong
 */
export const imageSet = (
  images: { readonly name: string; readonly idx: IdxArray },
  labels: { readonly name: string; readonly idx: IdxArray },
  classes = 256,
): ImageSet => {
  const bytes = ({ name, idx }: typeof images, rank: number, what: string): Uint8Array => {
    if (idx.dtype !== "uint8" || idx.shape.length !== rank) {
      throw new DataError(name, `holds ${idx.dtype} [${idx.shape}] where ${what} are expected`);
    }
    return idx.data;
  };
  const pixels = bytes(images, 3, "images, uint8 [count, height, width],");
  const classOf = bytes(labels, 1, "labels, uint8 [count],");
  const [count, height, width] = images.idx.shape as [number, number, number];
  if (classOf.length !== count) {
    throw new DataError(
      labels.name,
      `has ${classOf.length} labels for ${count} images in ${images.name}`,
    );
  }
  const strange = classOf.findIndex((label) => label >= classes);
  if (strange >= 0) {
    throw new DataError(
      labels.name,
      `label ${classOf[strange]} at ${strange} is not below ${classes}`,
    );
  }
  return { images: pixels, labels: classOf, count, height, width };
};

/** How bytes become numbers: `(byte / 255 - mean) / std`. */
export interface Normalization {
  readonly mean: number;
  readonly std: number;
}

/** Mean and standard deviation of MNIST's training pixels, as torchvision's examples use them. */
export const mnistNormalization: Normalization = { mean: 0.1307, std: 0.3081 };

/**
 * The images at `indices`, normalised, row-major [indices.length, height, width].
 * @param into written and returned when given; at least as long as the result, of which a longer array is a prefix
 * @throws RangeError when an index is not in the set or `into` is too short
 */
export const gatherImages = (
  set: ImageSet,
  indices: ArrayLike<number>,
  { mean, std }: Normalization = { mean: 0, std: 1 },
  into: Float32Array = new Float32Array(indices.length * set.height * set.width),
): Float32Array => {
  const pixels = set.height * set.width;
  if (into.length < indices.length * pixels) {
    throw new RangeError(
      `gatherImages: ${indices.length} images of ${set.height}×${set.width} need ${indices.length * pixels} elements, the array has ${into.length}`,
    );
  }
  const normalized = Float32Array.from({ length: 256 }, (_, byte) => (byte / 255 - mean) / std);
  for (let row = 0; row < indices.length; row++) {
    const start = checkedIndex("gatherImages", indices[row], set.count) * pixels;
    const target = row * pixels;
    for (let pixel = 0; pixel < pixels; pixel++) {
      into[target + pixel] = normalized[set.images[start + pixel] as number] as number;
    }
  }
  return into;
};

/**
 * The labels at `indices`, as the class indices that a cross-entropy takes.
 * @throws RangeError when an index is not in the set
 */
export const gatherLabels = (
  set: ImageSet,
  indices: ArrayLike<number>,
  into: Uint32Array = new Uint32Array(indices.length),
): Uint32Array => {
  if (into.length < indices.length) {
    throw new RangeError(
      `gatherLabels: ${indices.length} labels do not fit in ${into.length} elements`,
    );
  }
  for (let row = 0; row < indices.length; row++) {
    into[row] = set.labels[checkedIndex("gatherLabels", indices[row], set.count)] as number;
  }
  return into;
};

const checkedIndex = (verb: string, index: number | undefined, count: number): number => {
  if (index === undefined || !Number.isInteger(index) || index < 0 || index >= count) {
    throw new RangeError(`${verb}: index ${index} is not in a set of ${count}`);
  }
  return index;
};
