import { existsSync } from "node:fs";
import { dirname, isAbsolute, join, normalize, sep } from "node:path";
import { storingAsync } from "../errors.js";
import {
  type FileContent,
  type FileSystem,
  filling,
  nodeFileSystem,
  syncDirectory,
  writeNewFile,
} from "./file-system.js";
import { makeDirectory } from "./make-directory.js";
import { partialOf, type WholeFileOptions } from "./whole-file.js";

/** A folder that is being written. */
export interface NewFolder {
  /**
   * Writes a file, `masks/0001.png` for one, whose folders are made.
   * @throws StorageError
   */
  write(name: string, content: FileContent): Promise<void>;
}

/**
 * Writes files that belong together, such as a model with its vocabulary, or the images of a data set: all of them, or none. They are
 * written and flushed to the disk in a folder aside, which is then renamed. Into a folder that is there already
 * its files are moved one by one, over those of the same name; others in it stay.
 * @throws StorageError, and what `fill` throws; what was begun is gone then, and what was there is as it was
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
  const isThere = existsSync(path);
  // A folder that is there may be the root of a disk, beyond which nothing can be renamed.
  const aside = isThere ? partialOf(join(path, "files")) : partialOf(path);
  const names: string[] = [];
  try {
    await storingAsync(path, async () => {
      makeDirectory(isThere ? path : dirname(path));
      await fs.mkdir(aside);
    });
    const result = await fill({
      write: (name, content) =>
        storingAsync(join(path, name), async () => {
          const file = join(aside, within(name));
          await fs.mkdir(dirname(file), { recursive: true });
          await writeNewFile(fs, file, filling(content));
          names.push(within(name));
        }),
    });
    await storingAsync(path, async () => {
      for (const each of foldersOf(names)) await syncDirectory(fs, join(aside, each));
      if (!isThere) {
        await fs.rename(aside, path);
        return syncDirectory(fs, dirname(path));
      }
      for (const each of foldersOf(names)) await fs.mkdir(join(path, each), { recursive: true });
      for (const name of names) await moveInto(fs, join(aside, name), join(path, name));
      for (const each of foldersOf(names)) await syncDirectory(fs, join(path, each));
      await fs.rm(aside, { recursive: true, force: true });
    });
    return result;
  } catch (error) {
    await fs.rm(aside, { recursive: true, force: true }).catch(() => {});
    throw error;
  }
}

const moveInto = (fs: FileSystem, from: string, to: string): Promise<void> =>
  storingAsync(to, () => fs.rename(from, to));

/** The folders of files, from the outermost on; "" is the one that all are in. */
const foldersOf = (names: readonly string[]): readonly string[] => {
  const folders = new Set([""]);
  for (const name of names)
    for (let at = dirname(name); at !== "."; at = dirname(at)) folders.add(at);
  return [...folders].sort((a, b) => a.length - b.length);
};

/** The name without detours. @throws RangeError where it leads out of the folder */
const within = (name: string): string => {
  const plain = normalize(name);
  if (isAbsolute(plain) || plain === "." || plain.split(sep)[0] === "..")
    throw new RangeError(`${JSON.stringify(name)} is no name of a file within a folder`);
  return plain;
};
