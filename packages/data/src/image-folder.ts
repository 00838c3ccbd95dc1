import { readdir } from "node:fs/promises";
import { extname, join } from "node:path";
import { DataError } from "./error.js";
import { unreadable } from "./unreadable.js";

/** Image files of a folder with one folder a class. They are not decoded: that is for a library of your choice. */
export interface ImageFolder {
  /** Names of the classes, in the order of their labels. */
  readonly classes: readonly string[];
  /** Paths, class by class. */
  readonly files: readonly string[];
  /** [files.length], the class of each file. */
  readonly labels: Uint32Array;
}

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
 * same order. Files that are no images by their extension, and names that begin with a dot, are passed over.
 * @throws DataError when the directory cannot be read, has no images, a class that is not one of `classes`, or, where these
 * are not given, a class without images
 */
export async function imageFolder(
  directory: string,
  { classes: known, extensions = imageExtensions }: ImageFolderOptions = {},
): Promise<ImageFolder> {
  const found = (await entriesOf(directory)).filter((entry) => entry.isFolder);
  if (found.length === 0)
    throw new DataError(directory, "has no folders: images are in one folder for each class");
  const classes = known ?? found.map(({ name }) => name);
  const files: string[] = [];
  const labels: number[] = [];
  for (const { name, path } of found) {
    const label = classes.indexOf(name);
    if (label < 0)
      throw new DataError(path, `is a folder of none of the ${classes.length} classes`);
    const images = await imagesBelow(path, extensions);
    if (images.length === 0 && !known)
      throw new DataError(path, `has no images (${extensions.join(", ")})`);
    for (const image of images) {
      files.push(image);
      labels.push(label);
    }
  }
  if (files.length === 0)
    throw new DataError(directory, `has no images (${extensions.join(", ")})`);
  return { classes, files, labels: Uint32Array.from(labels) };
}

async function imagesBelow(directory: string, extensions: readonly string[]): Promise<string[]> {
  const images: string[] = [];
  for (const { path, isFolder } of await entriesOf(directory))
    if (isFolder) images.push(...(await imagesBelow(path, extensions)));
    else if (extensions.includes(extname(path).toLowerCase())) images.push(path);
  return images;
}

interface Entry {
  readonly name: string;
  readonly path: string;
  readonly isFolder: boolean;
}

/** Sorted by code units, which no locale changes. Symbolic links count as what their names say. */
async function entriesOf(directory: string): Promise<readonly Entry[]> {
  const entries = await readdir(directory, { withFileTypes: true }).catch((error: unknown) => {
    throw unreadable(directory, error);
  });
  return entries
    .filter(({ name }) => !name.startsWith("."))
    .map((entry) => ({
      name: entry.name,
      path: join(directory, entry.name),
      isFolder: entry.isDirectory() || (entry.isSymbolicLink() && extname(entry.name) === ""),
    }))
    .sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}
