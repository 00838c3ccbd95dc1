import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { ImageSet } from "@halfstep/data";
import sharp from "sharp";
import { readPixels } from "./data.js";

export interface ExportOptions {
  /** At most so many training images, and test images. Default: all. */
  readonly train?: number | undefined;
  readonly test?: number | undefined;
}

/**
 * Writes CIFAR-10 or IDX files as `to/train/CLASS/NUMBER.png` and `to/val/CLASS/NUMBER.png`, what `torchvision.datasets.ImageFolder`
 * reads. Returns how many images.
 * @throws DataError where there is nothing to read
 */
export async function exportFolder(
  directory: string,
  to: string,
  { train, test }: ExportOptions = {},
): Promise<number> {
  const { splits, classes } = await readPixels(directory);
  const parts = [
    { name: "train", set: splits.train, count: Math.min(train ?? Infinity, splits.train.count) },
    { name: "val", set: splits.test, count: Math.min(test ?? Infinity, splits.test.count) },
  ];
  for (const { name, set, count } of parts) {
    for (const each of classes) await mkdir(join(to, name, each), { recursive: true });
    const places = Array.from({ length: count }, (_, i) => i).values();
    const work = async (): Promise<void> => {
      for (const i of places) {
        const folder = classes[set.labels[i] as number] as string;
        await writePng(set, i, join(to, name, folder, `${String(i).padStart(5, "0")}.png`));
      }
    };
    await Promise.all([work(), work(), work(), work()]);
  }
  return parts.reduce((sum, { count }) => sum + count, 0);
}

async function writePng(
  { images, width, height, channels }: ImageSet,
  index: number,
  path: string,
): Promise<void> {
  const length = width * height * channels;
  await sharp(images.subarray(index * length, (index + 1) * length), {
    raw: { width, height, channels: channels as 1 | 3 },
  }).toFile(path);
}
