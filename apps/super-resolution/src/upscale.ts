import type { Device } from "@halfstep/device";
import type { Runtime } from "@halfstep/tensor";
import { Predictor, type TrainingPrecision } from "@halfstep/trainer";
import { type Area, cropped, type Picture, paste, toBytes } from "./images.js";
import type { LayersModel } from "./keras/layers-model.js";

/** Makes images of one size larger: values [height · scale, width · scale, 3], from about 0 to 255. */
export type Upscaler = Predictor<Picture>;

/** A network for prediction: by the recipe that it runs by already, and in 16 bits after `half()` or `bfloat16()`. */
export const upscalerOf = (
  runtime: Runtime,
  device: Device | undefined,
  model: LayersModel,
  precision?: TrainingPrecision,
): Upscaler =>
  new Predictor({
    runtime,
    device,
    model,
    precision,
    batchSize: 1,
    forward: ([image]) => {
      const { height, width, pixels } = image as Picture;
      return model.forward(runtime.tensor(Float32Array.from(pixels), [1, height, width, 3]));
    },
  });

/**
 * Enlarges an image. With tiles of so many pixels on each side it needs the memory of one tile. Tiles overlap by the receptive
 * field of the network, so that the result equals that of the whole image.
 * @throws RangeError where tiles are not larger than their overlap
 */
export async function upscale(
  upscaler: Upscaler,
  { scale, radius }: Pick<LayersModel, "scale" | "radius">,
  image: Picture,
  tile?: number,
): Promise<Picture> {
  const result: Picture = {
    width: image.width * scale,
    height: image.height * scale,
    pixels: new Uint8Array(image.width * image.height * 3 * scale ** 2),
  };
  const tiles = [...tilesOf(image, tile, radius)];
  const parts = upscaler.stream(tiles.map(({ area }) => cropped(image, area)));
  let next = 0;
  for await (const values of parts) {
    const { area, inner } = tiles[next++] as Tile;
    const enlarged: Picture = {
      width: area.width * scale,
      height: area.height * scale,
      pixels: toBytes(values),
    };
    const part = cropped(enlarged, {
      x: (inner.x - area.x) * scale,
      y: (inner.y - area.y) * scale,
      width: inner.width * scale,
      height: inner.height * scale,
    });
    paste(part, result, inner.x * scale, inner.y * scale);
  }
  return result;
}

/** The input tile of the network, and its part that is near to no edge other than the image's own. */
interface Tile {
  readonly area: Area;
  readonly inner: Area;
}

/** Tiles of one size, so that one plan does for all; their inner parts cover the image. */
export function* tilesOf(
  { width, height }: Pick<Picture, "width" | "height">,
  tile: number | undefined,
  radius: number,
): Generator<Tile> {
  const columns = spans(width, tile, radius);
  for (const row of spans(height, tile, radius))
    for (const column of columns)
      yield {
        area: { x: column.start, y: row.start, width: column.length, height: row.length },
        inner: {
          x: column.innerStart,
          y: row.innerStart,
          width: column.innerEnd - column.innerStart,
          height: row.innerEnd - row.innerStart,
        },
      };
}

interface Span {
  readonly start: number;
  readonly length: number;
  readonly innerStart: number;
  readonly innerEnd: number;
}

function spans(size: number, tile = size, radius = 0): readonly Span[] {
  if (tile >= size) return [{ start: 0, length: size, innerStart: 0, innerEnd: size }];
  const stride = tile - 2 * radius;
  if (stride < 1)
    throw new RangeError(
      `tiles of ${tile} pixels are all overlap: the network looks ${radius} pixels around, so make them larger than ${2 * radius}`,
    );
  const found: Span[] = [];
  for (let innerStart = 0; innerStart < size; ) {
    const start = Math.max(0, Math.min(innerStart - radius, size - tile));
    const innerEnd = start + tile >= size ? size : start + tile - radius;
    found.push({ start, length: tile, innerStart, innerEnd });
    innerStart = innerEnd;
  }
  return found;
}
