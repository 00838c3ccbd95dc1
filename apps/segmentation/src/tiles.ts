import { DataError, permutation } from "@halfstep/data";
import { ignored } from "./masks.js";
import { RandomNumbers } from "./random-numbers.js";
import type { Scene, SceneSet } from "./scene.js";

/** Square parts of scenes, in the format of a network. */
export interface Tiles {
  /** [count, tile, tile, channels], encoded */
  readonly images: Float32Array;
  /** [count · tile · tile], classes, or {@link ignored} */
  readonly labels: Uint32Array;
  readonly shape: readonly [count: number, height: number, width: number, channels: number];
}

/** How a network takes bytes of pictures: the networks of this program by their logarithms, others over 255. */
export const encodings = ["logarithmic", "linear"] as const;
export type Encoding = (typeof encodings)[number];

const numbersOf = (encode: (byte: number) => number): Float32Array =>
  Float32Array.from({ length: 256 }, (_, byte) => encode(byte));

/** The number of each byte. Logarithms are from −1 to 1; colours of nearly black pixels (oceans) differ as much as those of bright ones. */
export const encoded: Readonly<Record<Encoding, Float32Array>> = {
  logarithmic: numbersOf((byte) => Math.log2(1 + byte) / 4 - 1),
  linear: numbersOf((byte) => byte / 255),
};

export interface TrainingTilesOptions {
  /** Height and width of a tile. */
  readonly tile: number;
  readonly batchSize: number;
  readonly seed: number;
  /** Default: "logarithmic". */
  readonly encoding?: Encoding | undefined;
}

type Training = Pick<SceneSet, "train" | "flips">;

/** Steps in an epoch: it has as many tiles as cover the scenes, but whole batches. */
export const stepsPerEpoch = (
  { train }: Training,
  { tile, batchSize }: Pick<TrainingTilesOptions, "tile" | "batchSize">,
): number => Math.max(1, Math.floor(placesOf(train, tile).length / batchSize));

/**
 * The batches of an epoch from number `first` on: tiles from anywhere in the scenes, mirrored at random where the set allows
 * it. They follow from seed and epoch.
 * @throws DataError where a scene is smaller than a tile
 */
export function* trainingTiles(
  set: Training,
  options: TrainingTilesOptions,
  epoch: number,
  first = 0,
): Generator<Tiles> {
  const { tile, batchSize, seed, encoding } = options;
  const places = placesOf(set.train, tile);
  const order = permutation(places.length, seed, epoch);
  for (let batch = first; batch < stepsPerEpoch(set, options); batch++)
    yield tilesOf(
      Array.from({ length: batchSize }, (_, i): Place => {
        const at = batch * batchSize + i;
        const scene = places[order[at % places.length] as number] as Scene;
        const random = new RandomNumbers(seed, [epoch, at]);
        return {
          scene,
          y: random.below(scene.height - tile + 1),
          x: random.below(scene.width - tile + 1),
          isMirrored: set.flips && random.below(2) === 1,
          isUpsideDown: set.flips && random.below(2) === 1,
        };
      }),
      tile,
      encoding,
    );
}

/**
 * Tiles that cover scenes, each pixel counted once.
 * @throws DataError where a scene is smaller than a tile
 */
export function* coveringTiles(
  scenes: readonly Scene[],
  { tile, batchSize, encoding }: Omit<TrainingTilesOptions, "seed">,
): Generator<Tiles> {
  requireSize(scenes, tile);
  const places = scenes.flatMap((scene) =>
    starts(scene.height, tile).flatMap((y) =>
      starts(scene.width, tile).map((x) => ({ scene, y, x })),
    ),
  );
  for (let start = 0; start < places.length; start += batchSize)
    yield tilesOf(places.slice(start, start + batchSize), tile, encoding);
}

interface Place {
  readonly scene: Scene;
  readonly y: number;
  readonly x: number;
  readonly isMirrored?: boolean;
  readonly isUpsideDown?: boolean;
}

/** The starts of tiles that cover a length; the last may overlap the previous one. */
export const starts = (length: number, tile: number): readonly number[] =>
  Array.from({ length: Math.ceil(length / tile) }, (_, i) => Math.min(i * tile, length - tile));

/** Each scene once for each tile that covers it. */
function placesOf(scenes: readonly Scene[], tile: number): readonly Scene[] {
  requireSize(scenes, tile);
  return scenes.flatMap((scene) =>
    Array<Scene>(Math.max(1, Math.round((scene.height * scene.width) / tile ** 2))).fill(scene),
  );
}

function requireSize(scenes: readonly Scene[], tile: number): void {
  const small = scenes.find(({ height, width }) => height < tile || width < tile);
  if (!small) return;
  const { name, width, height, file } = small;
  const scaled = file && file.scale !== 1;
  const of = scaled ? ` at scale ${file.scale} (the file has ${file.width}×${file.height})` : "";
  throw new DataError(
    file?.path ?? name,
    `is ${width}×${height} pixels${of}, and tiles are ${tile}×${tile}: take a smaller --tile or a larger --scale`,
  );
}

function tilesOf(
  places: readonly Place[],
  tile: number,
  encoding: Encoding = "logarithmic",
): Tiles {
  const numbers = encoded[encoding];
  const channels = (places[0] as Place).scene.channels;
  const size = tile * tile;
  const images = new Float32Array(places.length * size * channels);
  const labels = new Uint32Array(places.length * size);
  for (const [i, place] of places.entries()) {
    const { scene, y, x, isMirrored = false, isUpsideDown = false } = place;
    // Rows and columns that an earlier tile has covered.
    const seenRows = isAligned(y, tile) ? 0 : tile - (scene.height % tile);
    const seenColumns = isAligned(x, tile) ? 0 : tile - (scene.width % tile);
    const isCovering = place.isMirrored === undefined;
    for (let row = 0; row < tile; row++)
      for (let column = 0; column < tile; column++) {
        const from =
          (y + (isUpsideDown ? tile - 1 - row : row)) * scene.width +
          x +
          (isMirrored ? tile - 1 - column : column);
        const to = i * size + row * tile + column;
        const isSeen = isCovering && (row < seenRows || column < seenColumns);
        labels[to] = isSeen ? ignored : (scene.labels[from] as number);
        for (let c = 0; c < channels; c++)
          images[to * channels + c] = numbers[
            scene.pixels[from * channels + c] as number
          ] as number;
      }
  }
  return { images, labels, shape: [places.length, tile, tile, channels] };
}

const isAligned = (start: number, tile: number): boolean => start % tile === 0;
