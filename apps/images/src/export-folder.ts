import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { DataError, type ImageSet, stratifiedSample } from "@halfstep/data";
import { unreadable } from "@halfstep/data/node";
import { writeWholeFolder } from "@halfstep/trainer/node";
import sharp from "sharp";
import { readPixels } from "./data.js";

export interface ExportOptions {
  /** At most so many training images, and test images, with the classes in their proportions. Default: all. */
  readonly train?: number | undefined;
  readonly test?: number | undefined;
}

/**
 * Writes CIFAR-10 or IDX files as `to/train/CLASS/NUMBER.png` and `to/val/CLASS/NUMBER.png`, what `torchvision.datasets.ImageFolder`
 * reads: all of them, or none. Returns how many images.
 * @throws DataError where there is nothing to read or `to` is not empty, StorageError where they cannot be written
 */
export async function exportFolder(
  directory: string,
  to: string,
  { train, test }: ExportOptions = {},
): Promise<number> {
  await requireEmpty(to);
  const { splits, classes } = await readPixels(directory);
  return writeWholeFolder(to, async (folder) => {
    let written = 0;
    for (const [part, set, limit] of [
      ["train", splits.train, train],
      ["val", splits.test, test],
    ] as const) {
      const places = stratifiedSample(set.labels, limit ?? set.count, 0);
      const rest = places.values();
      const work = async (): Promise<void> => {
        for (const i of rest) {
          const each = classes[set.labels[i] as number] as string;
          const name = `${String(i).padStart(5, "0")}.png`;
          await folder.write(join(part, each, name), await pngOf(set, i));
        }
      };
      await Promise.all([work(), work(), work(), work()]);
      written += places.length;
    }
    return written;
  });
}

/** Files of others beside the images would be data, too. */
async function requireEmpty(to: string): Promise<void> {
  if (!existsSync(to)) return;
  const names = await readdir(to).catch((error: unknown) => {
    throw unreadable(to, error);
  });
  if (names.length > 0)
    throw new DataError(to, "is not empty: name a new folder, or remove what is in it");
}

function pngOf({ images, width, height, channels }: ImageSet, index: number): Promise<Uint8Array> {
  const length = width * height * channels;
  return sharp(images.subarray(index * length, (index + 1) * length), {
    raw: { width, height, channels: channels as 1 | 3 },
  })
    .png()
    .toBuffer();
}
