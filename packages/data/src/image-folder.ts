import type { Stats } from "node:fs";
import { readdir, realpath, stat } from "node:fs/promises";
import { extname, join } from "node:path";
import { allInOrder } from "./all-in-order.js";
import { requireOptions } from "./checks.js";
import { DataError } from "./error.js";
import { irregular } from "./file-bytes.js";
import { unreadable } from "./unreadable.js";

/** Image files of a folder with one folder for each class. Use a library of your choice to decode them. */
export interface ImageFolder {
  /** Names of the classes, in the order of their labels. */
  readonly classes: readonly string[];
  /** Paths, class by class. */
  readonly files: readonly string[];
  /** [files.length], the class of each file. */
  readonly labels: Uint32Array;
}

/** Options of reading a folder of images. */
export interface ImageFolderOptions {
  /** The classes, in the order of their labels. Default: the names of the folders, in code unit order. */
  readonly classes?: readonly string[];
  /** Which files are images, in lower case. Default: JPEG, PNG, WebP, AVIF, GIF and TIFF. */
  readonly extensions?: readonly string[];
}

const imageExtensions: readonly string[] = [
  ".jpg",
  ".jpeg",
  ".png",
  ".webp",
  ".avif",
  ".gif",
  ".tif",
  ".tiff",
];

/**
 * Lists `directory/CLASS/…/IMAGE`, as torchvision's `ImageFolder` does: classes and files by name, so that every machine has the
 * same order. Files with other extensions, and names that begin with a dot, are skipped. Links are followed.
 * @throws DataError when the directory cannot be read, has no images or an unknown class, or, without `classes`, a class without
 * images. Also when a file with the name of an image is a FIFO, a socket or a device, when a link is broken, and when links lead
 * to the same folder of a class twice.
 */
export async function imageFolder(
  directory: string,
  options: ImageFolderOptions = {},
): Promise<ImageFolder> {
  requireOptions("imageFolder", options, ["classes", "extensions"]);
  const { classes: known, extensions = imageExtensions } = options;
  const found = (await entriesOf(directory, extensions)).filter(({ isFolder }) => isFolder);
  if (found.length === 0)
    throw new DataError(directory, "has no folders: images are in one folder for each class");
  const classes = known ?? found.map(({ name }) => name);
  const places = new Map(classes.map((name, label) => [name, label]));
  const files: string[] = [];
  const labels: number[] = [];
  for (const { name, path } of found) {
    const label = places.get(name);
    if (label === undefined)
      throw new DataError(path, `is a folder of none of the ${classes.length} classes`);
    const before = files.length;
    for await (const image of imagesBelow(path, extensions, new Set())) {
      files.push(image);
      labels.push(label);
    }
    if (files.length === before && !known)
      throw new DataError(path, `has no images (${extensions.join(", ")})`);
  }
  if (files.length === 0)
    throw new DataError(directory, `has no images (${extensions.join(", ")})`);
  return { classes, files, labels: Uint32Array.from(labels) };
}

/** @param seen the real paths of the folders of a class so far */
async function* imagesBelow(
  directory: string,
  extensions: readonly string[],
  seen: Set<string>,
): AsyncGenerator<string, void, undefined> {
  const real = await realpath(directory).catch((error: unknown) => {
    throw unreadable(directory, error);
  });
  // Links may lead in a circle, or double with every folder.
  if (seen.has(real))
    throw new DataError(
      directory,
      `leads to ${real}, which the class has already: remove the link`,
    );
  seen.add(real);
  for (const { path, isFolder, isImage } of await entriesOf(directory, extensions))
    if (isFolder) yield* imagesBelow(path, extensions, seen);
    else if (isImage) yield path;
}

interface Entry {
  readonly name: string;
  readonly path: string;
  readonly isFolder: boolean;
  /** A file whose name says that it is an image. */
  readonly isImage: boolean;
}

/** Sorted by code units, which no locale changes. */
async function entriesOf(
  directory: string,
  extensions: readonly string[],
): Promise<readonly Entry[]> {
  const entries = await readdir(directory, { withFileTypes: true }).catch((error: unknown) => {
    throw unreadable(directory, error);
  });
  const visible = entries.filter(({ name }) => !name.startsWith("."));
  const described = await allInOrder(
    visible.map(async (entry): Promise<Entry> => {
      const { name } = entry;
      const path = join(directory, name);
      const extension = extname(name).toLowerCase();
      const isNamedAsImage = extensions.includes(extension);
      const isWanted = isNamedAsImage || extension === "";
      const target = entry.isSymbolicLink() ? await targetOf(path, isWanted) : entry;
      const kind = target && irregular(target);
      if (isNamedAsImage && kind !== undefined && kind !== "a folder")
        throw new DataError(path, `is ${kind}, not an image: remove it`);
      return { name, path, isFolder: kind === "a folder", isImage: isNamedAsImage && !kind };
    }),
  );
  return described.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}

/** The target of a link. Undefined for a broken link that is not needed. */
async function targetOf(link: string, isWanted: boolean): Promise<Stats | undefined> {
  try {
    return await stat(link);
  } catch (error) {
    if (!isWanted) return undefined;
    if ((error as NodeJS.ErrnoException).code === "ENOENT")
      throw new DataError(link, "is a link that leads nowhere: remove it");
    throw unreadable(link, error);
  }
}
