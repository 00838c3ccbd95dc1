import { existsSync, readdirSync, statSync } from "node:fs";
import { join, parse } from "node:path";
import { DataError } from "@halfstep/data";
import { readTextFile, unreadable } from "@halfstep/data/node";

/** The files of a picture and its mask. */
export interface Pair {
  readonly name: string;
  readonly image: string;
  readonly mask: string;
}

/** The parts of a data set whose authors have divided it. */
export const splitNames = ["train", "val", "test"] as const;
export type SplitName = (typeof splitNames)[number];

/** The pairs of a folder: all, or those of each part that is there. */
export type FolderPairs =
  | { readonly all: readonly Pair[] }
  | { readonly splits: ReadonlyMap<SplitName, readonly Pair[]> };

/** Names of folders of pictures, and of masks, in published data sets. */
const [imageFolders, maskFolders] = [
  ["imgs", "images", "JPEGImages"],
  ["masks", "labels", "annotations", "SegmentationClass"],
];

/** Names that folders of a part have: those of ADE20K, too. */
const folderNames: Readonly<Record<SplitName, readonly string[]>> = {
  train: ["train", "training"],
  val: ["val", "valid", "validation"],
  test: ["test", "testing"],
};

/**
 * Finds pictures with their masks in one of these layouts:
 * - `imgs/NAME.*` with `masks/NAME.*` (or `images`, `JPEGImages`; `labels`, `annotations`, `SegmentationClass`), divided by lists of names
 *   (`train.txt`, `val.txt`, `test.txt` beside them or in `ImageSets/Segmentation`), by folders (`imgs/train`, `masks/train`), or not;
 * - `train/imgs` with `train/masks`, and `val`, `test`;
 * - `train` with `train_labels`, `trainannot` or `train_masks`, and `val`, `test`.
 *
 * The mask of NAME is `NAME`, `NAME_mask` or `NAME_L`.
 * @throws DataError where a file is missing
 */
export async function findPairs(directory: string): Promise<FolderPairs> {
  const inside = foldersIn(directory);
  if (inside) {
    const listed = await splitsOf(async (split) => {
      const list = [directory, join(directory, "ImageSets", "Segmentation")]
        .map((folder) => join(folder, `${split}.txt`))
        .find((path) => existsSync(path));
      return list === undefined ? undefined : pairsOf(inside, await namesIn(list), list);
    });
    if (listed) return { splits: listed };
    const divided = await splitsOf(async (split) => {
      const name = folderNames[split].find((each) => isFolder(join(inside.images, each)));
      if (name === undefined) return undefined;
      return pairsOf({ images: join(inside.images, name), masks: join(inside.masks, name) });
    });
    return divided ? { splits: divided } : { all: pairsOf(inside) };
  }
  const beside = await splitsOf(async (split) => {
    const folders = folderNames[split].flatMap((name) => {
      const images = join(directory, name);
      const masks = ["_labels", "annot", "_masks"].map((end) => `${images}${end}`).find(isFolder);
      return foldersIn(images) ?? (masks === undefined ? [] : { images, masks });
    });
    return folders[0] && pairsOf(folders[0]);
  });
  return beside ? { splits: beside } : { all: pairsOf(usualFolders(directory)) };
}

interface Folders {
  readonly images: string;
  readonly masks: string;
}

const usualFolders = (directory: string): Folders => ({
  images: join(directory, "imgs"),
  masks: join(directory, "masks"),
});

/** The folders of pictures and of masks in a folder. */
function foldersIn(directory: string): Folders | undefined {
  const find = (names: readonly string[]): string | undefined =>
    names.map((name) => join(directory, name)).find(isFolder);
  const [images, masks] = [find(imageFolders), find(maskFolders)];
  return images === undefined || masks === undefined ? undefined : { images, masks };
}

const isFolder = (path: string): boolean =>
  statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;

/** The parts that a function finds; undefined where it does not find one to learn from. */
async function splitsOf(
  find: (split: SplitName) => Promise<readonly Pair[] | undefined>,
): Promise<ReadonlyMap<SplitName, readonly Pair[]> | undefined> {
  const found = new Map<SplitName, readonly Pair[]>();
  for (const split of splitNames) {
    const pairs = await find(split);
    if (pairs) found.set(split, pairs);
  }
  return found.has("train") ? found : undefined;
}

/**
 * Pairs of pictures and masks by their names.
 * @param names Default: all pictures.
 * @param list Where the names are from.
 */
function pairsOf({ images, masks }: Folders, names?: readonly string[], list?: string): Pair[] {
  const [imageFiles, maskFiles] = [filesOf(images), filesOf(masks)];
  return (names ?? [...imageFiles.keys()]).map((name) => {
    const image = imageFiles.get(name);
    if (image === undefined)
      throw new DataError(list ?? images, `names ${name}, and ${images} has no such picture`);
    const mask = ["", "_mask", "_L"].map((end) => maskFiles.get(`${name}${end}`)).find(Boolean);
    if (mask === undefined) throw new DataError(image, `has no mask ${name}.png in ${masks}`);
    return { name, image, mask };
  });
}

/** Names in a list: a picture each line, with or without folder and ending; what comes after a space is left out. */
async function namesIn(list: string): Promise<readonly string[]> {
  const text = await readTextFile(list);
  return text
    .split(/\r?\n/)
    .map((line) => parse(line.trim().split(/\s+/, 1)[0] ?? "").name)
    .filter((name) => name !== "");
}

/** Paths by file name without extension. */
function filesOf(directory: string): ReadonlyMap<string, string> {
  try {
    const names = readdirSync(directory).filter((name) =>
      /\.(png|jpe?g|webp|tiff?|gif)$/i.test(name),
    );
    return new Map(names.sort().map((name) => [parse(name).name, join(directory, name)]));
  } catch (error) {
    throw unreadable(directory, error);
  }
}
