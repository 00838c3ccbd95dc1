import { DataError } from "./error.js";
import type { IdxArray } from "./idx.js";

/** Labelled images of one size. */
export interface ImageSet {
  /** [count, height, width, channels], one byte a channel. */
  readonly images: Uint8Array;
  /** [count], the class of each image. */
  readonly labels: Uint8Array;
  readonly count: number;
  /** Pixels. */
  readonly height: number;
  /** Pixels. */
  readonly width: number;
  /** 1 for grey, 3 for red, green and blue. */
  readonly channels: number;
}

/**
 * Pairs an IDX file of grey images (uint8 [count, height, width]) with one of labels (uint8 [count]).
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
  if (count > 0 && height * width === 0)
    throw new DataError(
      images.name,
      `has images of ${height}×${width} pixels: there is nothing in them`,
    );
  const strange = classOf.findIndex((label) => label >= classes);
  if (strange >= 0) {
    throw new DataError(
      labels.name,
      `label ${classOf[strange]} at ${strange} is not below ${classes}`,
    );
  }
  return { images: pixels, labels: classOf, count, height, width, channels: 1 };
};

/**
 * The conversion of bytes to numbers: `(byte / 255 - mean) / std`, with one number for all channels or one for each.
 */
export interface Normalization {
  readonly mean: number | readonly number[];
  readonly std: number | readonly number[];
}

/** Mean and standard deviation of MNIST's training pixels, as torchvision's examples use them. */
export const mnistNormalization: Normalization = { mean: 0.1307, std: 0.3081 };

/** Mean and standard deviation of ImageNet's channels, as torchvision's examples use them for images of any kind. */
export const imagenetNormalization: Normalization = {
  mean: [0.485, 0.456, 0.406],
  std: [0.229, 0.224, 0.225],
};

/**
 * Mean and standard deviation of each channel over all pixels of a set.
 * A channel that is the same everywhere has the deviation 1, so that normalising by it is defined.
 */
export const normalizationOf = ({
  images,
  channels,
}: Pick<ImageSet, "images" | "channels">): Normalization => {
  const counts = Array.from({ length: channels }, () => new Float64Array(256));
  for (let i = 0; i < images.length; i += channels)
    for (let channel = 0; channel < channels; channel++) {
      const histogram = counts[channel] as Float64Array;
      const byte = images[i + channel] as number;
      histogram[byte] = (histogram[byte] as number) + 1;
    }
  const pixels = images.length / channels;
  const mean = counts.map((histogram) => sumOf(histogram, (byte) => byte / 255) / pixels);
  const std = counts.map((histogram, channel) => {
    const center = mean[channel] as number;
    return Math.sqrt(sumOf(histogram, (byte) => (byte / 255 - center) ** 2) / pixels) || 1;
  });
  return { mean, std };
};

const sumOf = (histogram: Float64Array, value: (byte: number) => number): number =>
  histogram.reduce((sum, count, byte) => sum + count * value(byte), 0);

/**
 * The number of each byte in each channel: 256 numbers for each channel, channel after channel.
 * @throws RangeError when there is another number of means or deviations than channels
 */
export const normalizedBytes = (
  { mean, std }: Normalization,
  channels: number,
): Float32Array<ArrayBuffer> => {
  const of = (name: string, given: number | readonly number[], channel: number): number => {
    if (typeof given === "number") return given;
    if (given.length === channels) return given[channel] as number;
    throw new RangeError(`${given.length} values of ${name} do not go with ${channels} channels`);
  };
  return Float32Array.from({ length: 256 * channels }, (_, i) => {
    const channel = i >> 8;
    return ((i & 255) / 255 - of("mean", mean, channel)) / of("std", std, channel);
  });
};

/**
 * The images at `indices`, normalised, row-major [indices.length, height, width, channels].
 * @param into written and returned if given; at least as long as the result, whose elements come first
 * @throws RangeError when an index is not in the set or `into` is too short
 */
export const gatherImages = (
  set: ImageSet,
  indices: ArrayLike<number>,
  normalization: Normalization = { mean: 0, std: 1 },
  into: Float32Array = new Float32Array(indices.length * bytesOf(set)),
): Float32Array => {
  const { channels } = set;
  const bytes = bytesOf(set);
  if (into.length < indices.length * bytes) {
    throw new RangeError(
      `gatherImages: ${indices.length} images of ${set.height}×${set.width}${channels === 1 ? "" : `×${channels}`} need ${indices.length * bytes} elements, the array has ${into.length}`,
    );
  }
  const normalized = normalizedBytes(normalization, channels);
  for (let row = 0; row < indices.length; row++) {
    const start = checkedIndex("gatherImages", indices[row], set.count) * bytes;
    const target = row * bytes;
    for (let i = 0, channel = 0; i < bytes; i++) {
      into[target + i] = normalized[256 * channel + (set.images[start + i] as number)] as number;
      if (++channel === channels) channel = 0;
    }
  }
  return into;
};

/** Of one image. */
const bytesOf = ({ height, width, channels }: ImageSet): number => height * width * channels;

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
