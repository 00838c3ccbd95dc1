import {
  type ImageSet,
  type Normalization,
  normalizedBytes,
  prefetch,
  stratifiedSample,
} from "@halfstep/data";
import { type Random, randomShift } from "./augment.js";

/** Images for training or tests, in the format of the network: squares, channels-last, normalised. */
export interface Images {
  readonly count: number;
  /** [count]: the class of each image, or the place of its labels in `sets`. */
  readonly labels: ArrayLike<number>;
  /** For images with any number of labels: the different sets of them, each [labels], 1 for those in it, else 0. */
  readonly sets?: readonly Uint8Array[] | undefined;
  /** Pixels of a side. */
  readonly size: number;
  readonly channels: number;
  /** The name of an image, for people: its file, or its number. */
  nameOf(index: number): string;
  /**
   * Writes an image, [size, size, channels]. With random numbers it is augmented.
   * @throws DataError naming the file that cannot be decoded
   */
  load(index: number, into: Float32Array, random?: Random): void | Promise<void>;
}

export interface Batch {
  /** [n, size, size, channels] */
  readonly images: Float32Array;
  /** [n] */
  readonly labels: Uint32Array;
  /** For images with any number of labels: [n, labels], 1 for those that an image has, else 0. */
  readonly flags?: Float32Array | undefined;
}

export interface Augmentation {
  /** Pixels by which an image is moved at most. */
  readonly pad: number;
  /** Whether half of the images are mirrored. */
  readonly flip: boolean;
}

/** Images in memory. Pixels that a shift leaves empty are black. */
export function pixelImages(
  set: ImageSet,
  normalization: Normalization,
  { pad, flip }: Augmentation,
): Images {
  const { images, labels, count, height, width, channels } = set;
  const numbers = normalizedBytes(normalization, channels);
  return {
    ...{ count, labels, channels, size: height, nameOf: (index) => `image ${index}` },
    load(index, into, random) {
      const { down, right, isMirrored } = random
        ? randomShift(pad, flip, random)
        : { down: 0, right: 0, isMirrored: false };
      const start = index * height * width * channels;
      for (let y = 0, at = 0; y < height; y++)
        for (let x = 0; x < width; x++) {
          const fromY = y - down;
          const fromX = (isMirrored ? width - 1 - x : x) - right;
          const isInside = fromY >= 0 && fromY < height && fromX >= 0 && fromX < width;
          const from = start + (fromY * width + fromX) * channels;
          for (let channel = 0; channel < channels; channel++) {
            const byte = isInside ? (images[from + channel] as number) : 0;
            into[at++] = numbers[256 * channel + byte] as number;
          }
        }
    },
  };
}

/** The places of an image's labels: its class, or any number of them. */
export function labelsOf({ labels, sets }: Images, index: number): readonly number[] {
  const label = labels[index] as number;
  const set = sets?.[label];
  return set ? [...set].flatMap((has, place) => (has === 1 ? [place] : [])) : [label];
}

/** At most `limit` of some images, with the classes in proportion; the seed decides which ones. */
export function sampleOf(images: Images, limit: number | undefined, seed: number): Images {
  if (limit === undefined || limit >= images.count) return images;
  const labels = Uint32Array.from({ length: images.count }, (_, i) => images.labels[i] as number);
  const places = stratifiedSample(labels, limit, seed);
  const placeOf = (index: number): number => places[index] as number;
  return {
    ...images,
    count: places.length,
    labels: places.map((place) => labels[place] as number),
    nameOf: (index) => images.nameOf(placeOf(index)),
    load: (index, into, random) => images.load(placeOf(index), into, random),
  };
}

/**
 * Batches of the images at some indices, decoded ahead of training.
 * @param workers images that are decoded at a time
 * @param randomFor the random numbers of an image's augmentation; absent for none
 */
export const batchesOf = (
  images: Images,
  places: Iterable<Uint32Array>,
  workers: number,
  randomFor?: (index: number) => Random,
): AsyncGenerator<Batch, void, undefined> =>
  prefetch(places, (indices) => loadBatch(images, indices, workers, randomFor), { ahead: 2 });

async function loadBatch(
  images: Images,
  indices: Uint32Array,
  workers: number,
  randomFor?: (index: number) => Random,
): Promise<Batch> {
  const length = images.size ** 2 * images.channels;
  const pixels = new Float32Array(indices.length * length);
  const rows = indices.entries();
  let hasFailed = false;
  const work = async (): Promise<void> => {
    for (const [row, index] of rows) {
      if (hasFailed) return;
      await images.load(
        index,
        pixels.subarray(row * length, (row + 1) * length),
        randomFor?.(index),
      );
    }
  };
  await Promise.all(
    Array.from({ length: Math.min(workers, indices.length) }, () =>
      work().catch((error) => {
        hasFailed = true;
        throw error;
      }),
    ),
  );
  const labels = indices.map((index) => images.labels[index] as number);
  const { sets } = images;
  if (!sets) return { images: pixels, labels };
  const flags = Float32Array.from([...labels].flatMap((set) => [...(sets[set] as Uint8Array)]));
  return { images: pixels, labels, flags };
}
