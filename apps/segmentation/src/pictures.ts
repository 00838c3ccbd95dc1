import { DataError } from "@halfstep/data";
import { fileBytes } from "@halfstep/data/node";
import { writeWholeFile } from "@halfstep/trainer/node";
import sharp, { type Sharp } from "sharp";

/** Bytes of an image, [height, width, channels]. */
export interface Picture {
  readonly height: number;
  readonly width: number;
  readonly channels: number;
  readonly pixels: Uint8Array;
}

/** The picture of a file, perhaps scaled. */
export interface FilePicture extends Picture {
  /** The size in the file. */
  readonly fileSize: Size;
}

export type Size = Pick<Picture, "height" | "width">;

export interface ReadPictureOptions {
  /** 1 for grey, 3 for red, green and blue. */
  readonly channels: number;
  /** Factor of both sides. Default 1. */
  readonly scale?: number;
  /** The new size, instead of `scale`. */
  readonly size?: Size;
}

/**
 * Decodes a PNG, JPEG or another file that sharp reads.
 * @throws DataError where it cannot be read
 */
export async function readPicture(path: string, options: ReadPictureOptions): Promise<FilePicture> {
  const { channels, scale = 1 } = options;
  const bytes = await fileBytes(path);
  try {
    const image = sharp(bytes, { limitInputPixels: false });
    const { width, height, hasAlpha } = await image.metadata();
    requirePixels(path, { width, height });
    const size = options.size ?? {
      height: Math.max(1, Math.round(height * scale)),
      width: Math.max(1, Math.round(width * scale)),
    };
    requirePixels(path, size);
    const opaque = hasAlpha ? await withoutAlpha(image) : image;
    const { data, info } = await opaque
      .toColourspace(channels === 1 ? "b-w" : "srgb")
      .resize({ ...size, fit: "fill" })
      .raw()
      .toBuffer({ resolveWithObject: true });
    if (info.channels !== channels)
      throw new Error(`it has ${info.channels} channels where ${channels} are expected`);
    const fileSize = { height, width };
    return { ...size, channels, pixels: new Uint8Array(data), fileSize };
  } catch (error) {
    if (error instanceof DataError) throw error;
    throw new DataError(
      path,
      `cannot be read as an image (${firstLine(error)}): replace it by a PNG or JPEG file`,
    );
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

/**
 * Writes a PNG.
 * @throws StorageError
 */
export async function writePng(path: string, picture: Picture): Promise<void> {
  const { pixels, height, width, channels } = picture;
  const bytes = await sharp(pixels, { raw: { height, width, channels: channels as 1 | 3 } })
    .toColourspace(channels === 1 ? "b-w" : "srgb")
    .png()
    .toBuffer();
  await writeWholeFile(path, bytes);
}

/** The most pixels: a file of a few bytes may declare billions. */
const mostPixels = 2 ** 28;

/** @throws DataError where a picture would have more pixels than the limit */
export function requirePixels(path: string, { width, height }: Size): void {
  if (width * height > mostPixels)
    throw new DataError(
      path,
      `would have ${width}×${height} pixels, and at most ${mostPixels} are taken: scale it down, or lower --scale`,
    );
}

/** Of an error of sharp, which says in several lines what it tried. */
export const firstLine = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).split("\n", 1)[0]?.replace(/:$/, "") ??
  "";
