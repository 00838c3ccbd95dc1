import { noGrad, type Runtime } from "@halfstep/tensor";
import { inPrecision, type TrainingPrecision } from "@halfstep/trainer";
import { type Area, cropped, type Picture, paste, toBytes } from "./images.js";
import type { LayersModel } from "./keras/layers-model.js";

export interface UpscaleOptions {
  readonly precision: TrainingPrecision;
  /** Pixels in a row and in a column of the pieces that go through the network. Default: the image is one piece. */
  readonly tile?: number | undefined;
}

/**
 * An image made larger by the network. In tiles it needs the memory of one tile: they overlap by as far as the network looks
 * around, so that the result is that of the whole image.
 * @throws RangeError where tiles are so small that they are all overlap
 */
export async function upscale(
  runtime: Runtime,
  model: LayersModel,
  image: Picture,
  { precision, tile }: UpscaleOptions,
): Promise<Picture> {
  const { scale } = model;
  const result: Picture = {
    width: image.width * scale,
    height: image.height * scale,
    pixels: new Uint8Array(image.width * image.height * 3 * scale ** 2),
  };
  for (const { area, inner } of tilesOf(image, tile, model.radius)) {
    const { pixels } = cropped(image, area);
    using output = await runtime.step(() =>
      noGrad(() => {
        const x = runtime.tensor(Float32Array.from(pixels), [1, area.height, area.width, 3]);
        return inPrecision(precision, () => model.forward(x)).to("float32");
      }),
    );
    const enlarged: Picture = {
      width: area.width * scale,
      height: area.height * scale,
      pixels: toBytes(await output.toArray()),
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

/** What goes through the network, and the part of it that no edge but the image's own is near to. */
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
