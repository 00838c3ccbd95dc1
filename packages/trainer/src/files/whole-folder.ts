import { existsSync } from "node:fs";
import { dirname, isAbsolute, join, normalize, sep } from "node:path";
import { storingAsync } from "../errors.js";
import {
  type FileContent,
  filling,
  nodeFileSystem,
  syncDirectory,
  writeNewFile,
} from "./file-system.js";
import { locateFrom } from "./located.js";
import { makeDirectory } from "./make-directory.js";
import { partialOf, type WholeFileOptions } from "./whole-file.js";

/** A folder that is being written. */
export interface NewFolder {
  /**
   * Writes a file such as `masks/0001.png`, and makes its folders. Several may be written at a time.
   * @throws StorageError, and an Error after the function that fills the folder has ended or failed
   */
  write(name: string, content: FileContent): Promise<void>;
}

/**
 * Writes files that belong together, such as a model with its vocabulary, or the images of a data set: all of them, or none. They are
 * written and flushed to the disk in a temporary folder, which is then renamed. If the folder exists, the files are moved into it one
 * by one and replace those of the same name; other files stay.
 * @throws StorageError, and the errors of `fill`; partial files are then removed, and existing ones are unchanged
 *
 * @example
 * await writeWholeFolder("runs/model", async (folder) => {
 *   await folder.write("config.json", JSON.stringify(config));
 *   await folder.write("model.safetensors", (sink) => writeSafetensorsTo(sink, tensors));
 * });
 */
export async function writeWholeFolder<T>(
  path: string,
  fill: (folder: NewFolder) => Promise<T>,
  { fileSystem: fs = nodeFileSystem }: WholeFileOptions = {},
): Promise<T> {
  const place = locateFrom(path)(path);
  const isThere = existsSync(place);
  // An existing folder may be a mount point, and files cannot be renamed across file systems.
  const aside = isThere ? partialOf(join(place, "files")) : partialOf(place);
  const names: string[] = [];
  const writes: Promise<void>[] = [];
  let isOpen = true;
  const write = (name: string, content: FileContent): Promise<void> =>
    storingAsync(join(path, name), async () => {
      const file = join(aside, within(name));
      await fs.mkdir(dirname(file), { recursive: true });
      await writeNewFile(fs, file, filling(content));
      names.push(within(name));
    });
  try {
    await storingAsync(path, async () => {
      makeDirectory(isThere ? place : dirname(place));
      await fs.mkdir(aside);
    });
    const result = await fill({
      async write(name, content) {
        if (!isOpen) throw new Error(`${name} comes after the end of writing ${path}`);
        const written = write(name, content);
        writes.push(written);
        return written;
      },
    });
    isOpen = false;
    await Promise.all(writes);
    await storingAsync(path, async () => {
      for (const each of foldersOf(names)) await syncDirectory(fs, join(aside, each));
      if (!isThere) {
        await fs.rename(aside, place);
        return syncDirectory(fs, dirname(place));
      }
      for (const each of foldersOf(names)) await fs.mkdir(join(place, each), { recursive: true });
      for (const name of names)
        await storingAsync(join(path, name), () => fs.rename(join(aside, name), join(place, name)));
      for (const each of foldersOf(names)) await syncDirectory(fs, join(place, each));
      await fs.rm(aside, { recursive: true, force: true });
    });
    return result;
  } catch (error) {
    // A write that is still under way would make its folder anew.
    isOpen = false;
    await Promise.allSettled(writes);
    await fs.rm(aside, { recursive: true, force: true }).catch(() => {});
    throw error;
  }
}

/** The folders of files, outermost first; "" is the root. */
const foldersOf = (names: readonly string[]): readonly string[] => {
  const folders = new Set([""]);
  for (const name of names)
    for (let at = dirname(name); at !== "."; at = dirname(at)) folders.add(at);
  return [...folders].sort((a, b) => a.length - b.length);
};

/** The normalized name. @throws RangeError where it leads out of the folder */
const within = (name: string): string => {
  const plain = normalize(name);
  if (isAbsolute(plain) || plain === "." || plain.split(sep)[0] === "..")
    throw new RangeError(`${JSON.stringify(name)} is no name of a file within a folder`);
  return plain;
};
