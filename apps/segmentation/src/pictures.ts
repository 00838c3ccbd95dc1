import { writeFile } from "node:fs/promises";
import { DataError } from "@halfstep/data";
import { StorageError } from "@halfstep/trainer";
import sharp from "sharp";

/** Bytes of an image, [height, width, channels]. */
export interface Picture {
  readonly height: number;
  readonly width: number;
  readonly channels: number;
  readonly pixels: Uint8Array;
}

export interface ReadPictureOptions {
  /** 1 for grey, 3 for red, green and blue. */
  readonly channels: number;
  /** Both sides times this. Default 1. */
  readonly scale?: number;
  /** The size to come to, in place of `scale`. */
  readonly size?: { readonly height: number; readonly width: number };
  /** Masks are enlarged and reduced without inventing greys. Default false. */
  readonly isMask?: boolean;
}

/**
 * Decodes a PNG, JPEG or another file that sharp reads.
 * @throws DataError where it cannot be read
 */
export async function readPicture(path: string, options: ReadPictureOptions): Promise<Picture> {
  const { channels, scale = 1, isMask = false } = options;
  try {
    const image = sharp(path, { limitInputPixels: 2 ** 30 });
    const { width, height } = await image.metadata();
    const size = options.size ?? {
      height: Math.max(1, Math.round(height * scale)),
      width: Math.max(1, Math.round(width * scale)),
    };
    const { data, info } = await image
      .removeAlpha()
      .toColourspace(channels === 1 ? "b-w" : "srgb")
      .resize({ ...size, fit: "fill", kernel: isMask ? "nearest" : "lanczos3" })
      .raw()
      .toBuffer({ resolveWithObject: true });
    if (info.channels !== channels)
      throw new Error(`it has ${info.channels} channels where ${channels} are expected`);
    return { ...size, channels, pixels: new Uint8Array(data) };
  } catch (error) {
    throw new DataError(path, `cannot be read as an image (${firstLine(error)})`);
  }
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
  await writeFile(path, bytes).catch((error) => {
    throw new StorageError(path, error);
  });
}

const firstLine = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).split("\n", 1)[0] as string;
