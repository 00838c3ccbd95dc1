import { described, requireList } from "./checks.js";
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
 * @throws RangeError when there is another number of means or deviations than channels. Also for a mean that is not finite, and a deviation
 * that is not positive. TypeError where one of both is missing.
 */
export const normalizedBytes = (
  normalization: Normalization,
  channels: number,
): Float32Array<ArrayBuffer> => {
  const means = byChannel("mean", normalization, channels);
  const stds = byChannel("std", normalization, channels);
  return Float32Array.from({ length: 256 * channels }, (_, i) => {
    const channel = i >> 8;
    return ((i & 255) / 255 - (means[channel] as number)) / (stds[channel] as number);
  });
};

/** The mean or the deviation of each channel. */
function byChannel(
  name: "mean" | "std",
  normalization: Normalization,
  channels: number,
): ArrayLike<number> {
  const given = (normalization as Partial<Normalization> | null)?.[name];
  if (typeof given !== "number" && !Array.isArray(given) && !ArrayBuffer.isView(given))
    throw new TypeError(
      `${name} is ${described(given)}: pass { mean, std }, each a number or one for each channel`,
    );
  const values: readonly number[] =
    typeof given === "number" ? Array.from({ length: channels }, () => given) : [...given];
  if (values.length !== channels)
    throw new RangeError(`${values.length} values of ${name} do not go with ${channels} channels`);
  const wrong = values.find((value) => !Number.isFinite(value) || (name === "std" && !(value > 0)));
  // A deviation of 0 would make infinities of all pixels but those that are the mean.
  if (wrong !== undefined)
    throw new RangeError(
      `${name} is ${described(wrong)}: it must be a ${name === "std" ? "positive " : ""}finite number`,
    );
  return values;
}

/**
 * The images at `indices`, normalised, row-major [indices.length, height, width, channels].
 * @param into written and returned if given; at least as long as the result, whose elements come first
 * @throws RangeError when an index is not in the set or `into` is too short, and as {@link normalizedBytes}. TypeError for what is no set, no
 * indices or no array to write into.
 */
export const gatherImages = (
  set: ImageSet,
  indices: ArrayLike<number>,
  normalization: Normalization = { mean: 0, std: 1 },
  into?: Float32Array,
): Float32Array => {
  requireSet("gatherImages", set, indices);
  const { channels } = set;
  const bytes = bytesOf(set);
  requireInto("gatherImages", into, "Float32Array");
  const result = into ?? new Float32Array(indices.length * bytes);
  if (result.length < indices.length * bytes) {
    throw new RangeError(
      `gatherImages: ${indices.length} images of ${set.height}×${set.width}${channels === 1 ? "" : `×${channels}`} need ${indices.length * bytes} elements, the array has ${result.length}`,
    );
  }
  const normalized = normalizedBytes(normalization, channels);
  for (let row = 0; row < indices.length; row++) {
    const start = checkedIndex("gatherImages", indices[row], set.count) * bytes;
    const target = row * bytes;
    for (let i = 0, channel = 0; i < bytes; i++) {
      result[target + i] = normalized[256 * channel + (set.images[start + i] as number)] as number;
      if (++channel === channels) channel = 0;
    }
  }
  return result;
};

function requireSet(call: string, set: ImageSet, indices: ArrayLike<number>): void {
  if (typeof set !== "object" || set === null)
    throw new TypeError(
      `${call}: the set is ${described(set)}: pass what imageSet() or a reader returned`,
    );
  requireList(call, "indices", indices, "an array of indices, such as a batch of a sampler");
}

/** Another array would round or wrap what it cannot hold. */
function requireInto(call: string, into: unknown, kind: "Float32Array" | "Uint32Array"): void {
  if (into !== undefined && Object.prototype.toString.call(into) !== `[object ${kind}]`)
    throw new TypeError(`${call}: into is ${described(into)}: pass a ${kind}, or leave it out`);
}

/** Of one image. */
const bytesOf = ({ height, width, channels }: ImageSet): number => height * width * channels;

/**
 * The labels at `indices`, as the class indices that a cross-entropy takes.
 * @param into written and returned if given; at least as long as the result, whose elements come first
 * @throws RangeError when an index is not in the set or `into` is too short. TypeError for what is no set, no indices or no Uint32Array
 */
export const gatherLabels = (
  set: ImageSet,
  indices: ArrayLike<number>,
  into?: Uint32Array,
): Uint32Array => {
  requireSet("gatherLabels", set, indices);
  requireInto("gatherLabels", into, "Uint32Array");
  const result = into ?? new Uint32Array(indices.length);
  if (result.length < indices.length) {
    throw new RangeError(
      `gatherLabels: ${indices.length} labels do not fit in ${result.length} elements`,
    );
  }
  for (let row = 0; row < indices.length; row++) {
    result[row] = set.labels[checkedIndex("gatherLabels", indices[row], set.count)] as number;
  }
  return result;
};

const checkedIndex = (verb: string, index: number | undefined, count: number): number => {
  if (index === undefined || !Number.isInteger(index) || index < 0 || index >= count) {
    throw new RangeError(`${verb}: index ${index} is not in a set of ${count}`);
  }
  return index;
};
