import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { DataError, permutation } from "@halfstep/data";
import { unreadable } from "@halfstep/data/node";
import { Generator } from "@halfstep/nn";
import {
  type Area,
  cropped,
  type Picture,
  readPicture,
  resized,
  type ShrinkKernel,
} from "./images.js";
import { photograph } from "./pretrained.js";

/** An image of which one part is used for evaluation; the rest is context for the network. */
export interface JudgedPicture {
  readonly picture: Picture;
  readonly area: Area;
}

/** An image to learn from, or a part of one. */
interface TrainingPicture extends Picture {
  /** Its file. */
  readonly path: string;
}

/** Images to learn from, and images to judge by. */
export interface Pictures {
  readonly train: readonly TrainingPicture[];
  readonly test: readonly JudgedPicture[];
}

/**
 * The images of a folder, of which every tenth, by name, is to judge by; or without one the photograph that comes with the
 * network, whose right quarter is.
 * @throws DataError
 */
export async function readPictures(directory?: string): Promise<Pictures> {
  if (directory === undefined) {
    const path = await photograph();
    const picture = await readPicture(path);
    const { width, height } = picture;
    const seam = Math.floor((width * 3) / 4);
    return {
      train: [{ ...cropped(picture, { x: 0, y: 0, width: seam, height }), path }],
      test: [{ picture, area: { x: seam, y: 0, width: width - seam, height } }],
    };
  }
  const names = await readdir(directory).catch((error: unknown) => {
    throw unreadable(directory, error);
  });
  const images = names.filter((name) => /\.(png|jpe?g|webp|tiff?)$/i.test(name)).sort();
  if (images.length < 2)
    throw new DataError(
      directory,
      `has ${images.length} images (PNG, JPEG, WebP, TIFF): it needs two, one to learn from and one to judge by`,
    );
  const paths = images.map((name) => join(directory, name));
  const pictures = await Promise.all(
    paths.map(async (path): Promise<TrainingPicture> => ({ ...(await readPicture(path)), path })),
  );
  return {
    train: pictures.filter((_, i) => i % 10 !== 0),
    test: pictures
      .filter((_, i) => i % 10 === 0)
      .map((picture) => {
        const { width, height } = picture;
        return { picture, area: { x: 0, y: 0, width, height } };
      }),
  };
}

/** Small images, and the large ones that they were. */
export interface Pairs {
  /** [count, size / scale, size / scale, 3], from 0 to 255 */
  readonly small: Float32Array;
  /** [count, size, size, 3] */
  readonly large: Float32Array;
  readonly count: number;
  /** Of the large ones, in pixels. */
  readonly size: number;
}

export interface PairOptions {
  readonly pictures: readonly TrainingPicture[];
  /** Pixels of a crop in a row and in a column: a multiple of `scale`. */
  readonly crop: number;
  readonly scale: number;
  readonly kernel: ShrinkKernel;
  /** Crops in a batch. */
  readonly batchSize: number;
  /** Batches in an epoch. */
  readonly batches: number;
  readonly seed: number;
}

/**
 * Random crops of random pictures, turned and mirrored, and the same made smaller: an epoch, from batch `first` on.
 * @throws DataError where a picture is smaller than a crop
 */
export async function* randomPairs(
  options: PairOptions,
  epoch: number,
  first = 0,
): AsyncGenerator<Pairs> {
  const { pictures, crop, batchSize, batches, seed } = options;
  const tiny = pictures.find(({ width, height }) => Math.min(width, height) < crop);
  if (tiny)
    throw new DataError(
      tiny.path,
      `has ${tiny.width}×${tiny.height} pixels to learn from, fewer than a crop of ${crop}: lower --crop, or leave the image out`,
    );
  const seeds = permutation(2 ** 16, seed, epoch);
  for (let batch = first; batch < batches; batch++) {
    const generator = new Generator(seeds[batch % seeds.length] as number);
    const below = (count: number): number => Math.floor(generator.uniform() * count);
    const crops = Array.from({ length: batchSize }, () => {
      const picture = pictures[below(pictures.length)] as Picture;
      const x = below(picture.width - crop + 1);
      const y = below(picture.height - crop + 1);
      return turned(picture, { x, y, width: crop, height: crop }, below(8));
    });
    yield await pairsOf(crops, options);
  }
}

async function pairsOf(
  crops: readonly Picture[],
  { crop, scale, kernel }: Pick<PairOptions, "crop" | "scale" | "kernel">,
): Promise<Pairs> {
  const shrunk = await Promise.all(crops.map((each) => resized(each, 1 / scale, kernel)));
  const joined = (pictures: readonly Picture[]): Float32Array => {
    const length = pictures[0]?.pixels.length ?? 0;
    const values = new Float32Array(pictures.length * length);
    for (const [i, { pixels }] of pictures.entries()) values.set(pixels, i * length);
    return values;
  };
  return { small: joined(shrunk), large: joined(crops), count: crops.length, size: crop };
}

/** A square part of a picture in one of the eight ways to lay a square on itself. */
export function turned(picture: Picture, area: Area, way: number): Picture {
  const { width: size } = area;
  const part = cropped(picture, area);
  if (way === 0) return part;
  const pixels = new Uint8Array(part.pixels.length);
  for (let y = 0; y < size; y++)
    for (let x = 0; x < size; x++) {
      const [a, b] = way & 4 ? [y, x] : [x, y];
      const column = way & 1 ? size - 1 - a : a;
      const row = way & 2 ? size - 1 - b : b;
      const from = (row * size + column) * 3;
      const to = (y * size + x) * 3;
      for (let channel = 0; channel < 3; channel++)
        pixels[to + channel] = part.pixels[from + channel] as number;
    }
  return { width: size, height: size, pixels };
}
