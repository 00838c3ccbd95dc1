import { DataError, type Normalization, normalizedBytes } from "@halfstep/data";
import sharp, { type Sharp } from "sharp";
import { type Crop, type Random, randomResizedCrop } from "./augment.js";
import type { Images } from "./images.js";

// Every file is decoded once an epoch: keeping the last ones would only hold memory.
sharp.cache(false);

export interface DecodeOptions {
  /** Pixels of a side. */
  readonly size: number;
  /** 1 or 3: files become grey or RGB, whatever they are. */
  readonly channels: number;
  readonly normalization: Normalization;
  /** For testing, the shorter side becomes `resize` pixels and the middle is taken. */
  readonly resize: number;
  /** The smallest part of an image that training sees. */
  readonly minScale: number;
  /** Whether training sees half of the images mirrored. */
  readonly flip: boolean;
}

/** Image files, decoded by libvips on threads of its own. */
export function fileImages(
  files: readonly string[],
  labels: ArrayLike<number>,
  options: DecodeOptions,
): Images {
  const { size, channels, minScale, flip } = options;
  const numbers = normalizedBytes(options.normalization, channels);
  return {
    ...{ count: files.length, labels, size, channels },
    async load(index, into, random) {
      const file = files[index] as string;
      const bytes = random
        ? await randomView(file, { size, channels, minScale, flip }, random)
        : await centerView(file, options);
      for (let i = 0, channel = 0; i < into.length; i++) {
        into[i] = numbers[256 * channel + (bytes[i] as number)] as number;
        if (++channel === channels) channel = 0;
      }
    },
  };
}

/** A random part of an image at the network's size, mirrored or not: what ResNets are trained on. */
function randomView(
  file: string,
  options: Pick<DecodeOptions, "size" | "channels" | "minScale" | "flip">,
  random: Random,
): Promise<Uint8Array> {
  const { size, minScale, flip } = options;
  return decoded(file, options, (image, whole) => {
    const crop = randomResizedCrop(whole, minScale, random);
    const isMirrored = flip && random() < 0.5;
    return image.extract(crop).resize(size, size, { fit: "fill" }).flop(isMirrored);
  });
}

/** The middle of an image whose shorter side has become `resize` pixels. */
export function centerView(
  file: string,
  { size, resize, channels }: Pick<DecodeOptions, "size" | "resize" | "channels">,
): Promise<Uint8Array> {
  return decoded(file, { size, channels }, (image, { width, height }) => {
    const scale = resize / Math.min(width, height);
    const middle = (side: number): number => Math.floor((Math.round(side * scale) - size) / 2);
    return image
      .resize({ width: resize, height: resize, fit: "outside" })
      .extract({ left: middle(width), top: middle(height), width: size, height: size });
  });
}

/** The bytes of what `view` makes of a file, [size, size, channels]. */
async function decoded(
  file: string,
  { size, channels }: Pick<DecodeOptions, "size" | "channels">,
  view: (image: Sharp, whole: Pick<Crop, "width" | "height">) => Sharp,
): Promise<Uint8Array> {
  try {
    const image = sharp(file, { failOn: "error" });
    const { width, height } = await image.metadata();
    const { data, info } = await view(image, { width, height })
      .removeAlpha()
      .toColourspace(channels === 1 ? "b-w" : "srgb")
      .raw({ depth: "uchar" })
      .toBuffer({ resolveWithObject: true });
    if (info.width === size && info.height === size && info.channels === channels) return data;
    throw new Error(`became ${info.width}×${info.height}×${info.channels}`);
  } catch (error) {
    // libvips says in several lines what it tried.
    const [reason] = (error as Error).message.split("\n");
    throw new DataError(file, `cannot be decoded (${reason}): remove it, or replace it`);
  }
}
