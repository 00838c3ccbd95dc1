import { existsSync, realpathSync } from "node:fs";
import { extname } from "node:path";
import { DataError } from "@halfstep/data";
import { fileBytes } from "@halfstep/data/node";
import { UsageError } from "@halfstep/trainer/cli";
import { writeWholeFile } from "@halfstep/trainer/node";
import sharp, { type Sharp } from "sharp";

/** An image in RGB. */
export interface Picture {
  readonly width: number;
  readonly height: number;
  /** [height, width, 3], from 0 to 255 */
  readonly pixels: Uint8Array;
}

/** The most pixels: a file of a few bytes may declare billions, and the result has four times as many. */
const mostPixels = 2 ** 27;

/** Kernels for shrinking an image, by sharp's names. */
export const shrinkKernels = ["nearest", "cubic", "mitchell", "lanczos2", "lanczos3"] as const;

export type ShrinkKernel = (typeof shrinkKernels)[number];

/**
 * Reads an image file as RGB, without its transparency.
 * @throws DataError where it cannot be read
 */
export async function readPicture(path: string): Promise<Picture> {
  const bytes = await fileBytes(path);
  try {
    const image = sharp(bytes, { limitInputPixels: false });
    const { width, height } = await image.metadata();
    if (width * height > mostPixels)
      throw new Error(`it has ${width}×${height} pixels, and at most ${mostPixels} are read`);
    const { data, info } = await image
      .rotate()
      .toColourspace("srgb")
      .removeAlpha()
      .raw()
      .toBuffer({ resolveWithObject: true });
    if (info.channels !== 3) throw new Error(`it has ${info.channels} channels`);
    return { width: info.width, height: info.height, pixels: new Uint8Array(data) };
  } catch (error) {
    throw new DataError(path, `is no image that can be read (${firstLine(error)})`);
  }
}

const formats: Readonly<Record<string, "png" | "jpeg" | "webp" | "tiff">> = {
  ...{ ".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg", ".webp": "webp" },
  ...{ ".tif": "tiff", ".tiff": "tiff" },
};

/**
 * Writes an image in the format of the file name: PNG, JPEG, WebP or TIFF.
 * @throws DataError for another ending, StorageError where it cannot be written
 */
export async function writePicture(path: string, picture: Picture): Promise<void> {
  const format = formatOf(path);
  await writeWholeFile(path, await raw(picture).toFormat(format).toBuffer());
}

/**
 * Checks where the result of an image is to be written, before it is computed.
 * @throws DataError unless {@link writePicture} knows the ending; UsageError where the result would replace the image
 */
export function requireWritten(path: string, from: string): void {
  formatOf(path);
  // A result that is not there yet replaces nothing.
  if (!existsSync(path) || !existsSync(from)) return;
  if (realpathSync.native(path) === realpathSync.native(from))
    throw new UsageError(`the result would replace the image ${from}: name another file`);
}

function formatOf(path: string): (typeof formats)[string] {
  const format = formats[extname(path).toLowerCase()];
  if (!format)
    throw new DataError(path, "cannot be written: let it end in .png, .jpg, .webp or .tiff");
  return format;
}

/** The image in another size. */
export async function resized(
  picture: Picture,
  factor: number,
  kernel: ShrinkKernel,
): Promise<Picture> {
  const width = Math.round(picture.width * factor);
  const height = Math.round(picture.height * factor);
  const data = await raw(picture).resize(width, height, { kernel, fit: "fill" }).raw().toBuffer();
  return { width, height, pixels: new Uint8Array(data) };
}

/** A rectangle of an image, in pixels. */
export interface Area {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** A part of an image. */
export function cropped({ width, pixels }: Picture, area: Area): Picture {
  const cut = new Uint8Array(area.width * area.height * 3);
  for (let row = 0; row < area.height; row++) {
    const start = ((area.y + row) * width + area.x) * 3;
    cut.set(pixels.subarray(start, start + area.width * 3), row * area.width * 3);
  }
  return { width: area.width, height: area.height, pixels: cut };
}

/** Puts an image into another one, with its upper left corner at (x, y). */
export function paste(part: Picture, into: Picture, x: number, y: number): void {
  const length = part.width * 3;
  for (let row = 0; row < part.height; row++)
    into.pixels.set(
      part.pixels.subarray(row * length, (row + 1) * length),
      ((y + row) * into.width + x) * 3,
    );
}

/** Numbers from a network, rounded and clamped to bytes. */
export const toBytes = (values: ArrayLike<number>): Uint8Array =>
  Uint8Array.from(values, (value) => Math.min(255, Math.max(0, Math.round(value))));

/** Sum of the squared differences of two images of one size. */
export function squaredError(a: ArrayLike<number>, b: ArrayLike<number>): number {
  if (a.length !== b.length)
    throw new RangeError(`images of ${a.length} and ${b.length} values cannot be compared`);
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += ((a[i] as number) - (b[i] as number)) ** 2;
  return sum;
}

/** Peak signal-to-noise ratio in dB of a mean squared error: Infinity for 0. */
export const decibels = (meanSquaredError: number): number =>
  10 * Math.log10(255 ** 2 / meanSquaredError);

/** Peak signal-to-noise ratio in dB of an image to another one. */
export const psnr = (a: ArrayLike<number>, b: ArrayLike<number>): number =>
  decibels(squaredError(a, b) / a.length);

const raw = ({ width, height, pixels }: Picture): Sharp =>
  sharp(pixels, { raw: { width, height, channels: 3 } });

const firstLine = (error: unknown): string =>
  (error as Error).message.split("\n", 1)[0]?.replace(/:$/, "") ?? "";
