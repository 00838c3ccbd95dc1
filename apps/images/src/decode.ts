import { DataError, type Normalization, normalizedBytes } from "@halfstep/data";
import { fileBytes } from "@halfstep/data/node";
import sharp, { type Sharp } from "sharp";
import { type Crop, type Random, randomResizedCrop } from "./augment.js";
import type { Images } from "./images.js";

// Every file is decoded once an epoch, so a cache would only waste memory.
sharp.cache(false);

/** Images with more pixels are not decoded (Pillow's limit): a file of a few bytes may declare billions. */
const mostPixels = 178_956_970;

/** The view of files in tests. */
interface CenterView {
  /** Pixels of a side. */
  readonly size: number;
  /** 1 or 3: files are converted to grey or RGB. */
  readonly channels: number;
  /** The shorter side becomes `resize` pixels, and the middle is taken. */
  readonly resize: number;
  /** Whether images of `size` by `size` pixels are resized, too. Default: they are used unchanged. */
  readonly zoomsAll?: boolean | undefined;
}

export interface DecodeOptions extends CenterView {
  readonly normalization: Normalization;
  /** The smallest part of an image that training uses. */
  readonly minScale: number;
  /** Whether training mirrors half of the images. */
  readonly flip: boolean;
}

/** Image files, decoded by libvips on threads of its own. */
export function fileImages(
  { files, labels, sets }: Pick<Images, "labels" | "sets"> & { readonly files: readonly string[] },
  options: DecodeOptions,
): Images {
  const { size, channels, minScale, flip } = options;
  const numbers = normalizedBytes(options.normalization, channels);
  return {
    ...{ count: files.length, labels, sets, size, channels },
    nameOf: (index) => files[index] as string,
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

/** The middle of an image whose shorter side has become `resize` pixels; or all of one that has the right size already. */
export function centerView(
  file: string,
  { size, resize, channels, zoomsAll = false }: CenterView,
): Promise<Uint8Array> {
  return decoded(file, { size, channels }, (image, { width, height }) => {
    if (!zoomsAll && width === size && height === size) return image;
    const scale = resize / Math.min(width, height);
    const middle = (side: number): number => Math.floor((Math.round(side * scale) - size) / 2);
    return image
      .resize({ width: resize, height: resize, fit: "outside" })
      .extract({ left: middle(width), top: middle(height), width: size, height: size });
  });
}

/** The bytes of a file after `view`, [size, size, channels]. */
async function decoded(
  file: string,
  { size, channels }: Pick<DecodeOptions, "size" | "channels">,
  view: (image: Sharp, whole: Pick<Crop, "width" | "height">) => Sharp,
): Promise<Uint8Array> {
  const bytes = await fileBytes(file);
  if (bytes.length === 0) throw new DataError(file, "is empty: remove it, or replace it");
  try {
    const image = sharp(bytes, { failOn: "error", limitInputPixels: false });
    const { width, height, hasAlpha } = await image.metadata();
    if (width * height > mostPixels)
      throw new DataError(
        file,
        `has ${width}×${height} pixels, and at most ${mostPixels} are decoded: scale it down, or remove it`,
      );
    const opaque = hasAlpha ? await withoutAlpha(image) : image;
    const { data, info } = await view(opaque, { width, height })
      .toColourspace(channels === 1 ? "b-w" : "srgb")
      .raw({ depth: "uchar" })
      .toBuffer({ resolveWithObject: true });
    if (info.width === size && info.height === size && info.channels === channels) return data;
    throw new Error(`became ${info.width}×${info.height}×${info.channels}`);
  } catch (error) {
    if (error instanceof DataError) throw error;
    // libvips says in several lines what it tried.
    const reason = (error as Error).message.split("\n", 1)[0]?.replace(/:$/, "");
    throw new DataError(file, `cannot be decoded (${reason}): remove it, or replace it`);
  }
}

/**
 * An image without its transparency, decoded. Resizing weights colours by their transparency, and what is transparent would become
 * black: as for Pillow's `convert("RGB")`, the colours count that the file has.
 */
async function withoutAlpha(image: Sharp): Promise<Sharp> {
  const { data, info } = await image
    .removeAlpha()
    .raw({ depth: "uchar" })
    .toBuffer({ resolveWithObject: true });
  const { width, height, channels } = info;
  return sharp(data, { raw: { width, height, channels }, limitInputPixels: false });
}
