import { randomBytes } from "node:crypto";
import { realpathSync, type Stats, statSync } from "node:fs";
import { dirname } from "node:path";
import { storingAsync } from "../errors.js";
import {
  type FileContent,
  type FileSystem,
  filling,
  nodeFileSystem,
  syncDirectory,
  writeNewFile,
} from "./file-system.js";
import { type Locate, locateFrom } from "./located.js";

/** Options of writing a file as a whole. */
export interface WholeFileOptions {
  /** Default: that of Node. */
  readonly fileSystem?: FileSystem;
}

/**
 * Writes a file that appears whole or not at all: it is written next to its path (`NAME.1a2b3c4d.partial`), flushed to the disk, and
 * renamed. Until then an existing file does not change. Permissions are kept, and a link stays a link. A device or a pipe
 * (`/dev/stdout`) is written directly.
 * @throws StorageError that names the file, for example on a full disk; the partial file is removed
 *
 * @example
 * await writeWholeFile("out/masks/0001.png", png);
 * await writeWholeFile("model.safetensors", (sink) =>
 *   writeSafetensorsTo(sink, safetensorsOf(state), { metadata: { format: "pt" } }),
 * );
 */
export async function writeWholeFile(
  path: string,
  content: FileContent,
  options: WholeFileOptions = {},
): Promise<void> {
  await writeLocatedFile(path, content, locateFrom(path), options);
}

/** As {@link writeWholeFile}, of a folder that knows where its paths are. */
export async function writeLocatedFile(
  path: string,
  content: FileContent,
  locate: Locate,
  { fileSystem: fs = nodeFileSystem }: WholeFileOptions = {},
): Promise<void> {
  const fill = filling(content);
  const place = locate(path);
  await storingAsync(path, async () => {
    const old = statSync(place, { throwIfNoEntry: false });
    if (old && !old.isFile() && !old.isDirectory()) return writeToDevice(fs, place, fill);
    const target = old ? realpathSync(place) : place;
    const partial = partialOf(target);
    try {
      await writeNewFile(fs, partial, fill, permissions(old));
      await fs.rename(partial, target);
    } catch (error) {
      // Free the space of the partial file: the disk may be full.
      await fs.rm(partial, { force: true }).catch(() => {});
      throw error;
    }
    await syncDirectory(fs, dirname(target));
  });
}

/** A unique name next to a path. */
export const partialOf = (path: string): string =>
  `${path}.${randomBytes(4).toString("hex")}.partial`;

const permissions = (old: Stats | undefined): number | undefined =>
  old?.isFile() ? old.mode & 0o777 : undefined;

async function writeToDevice(
  fs: FileSystem,
  path: string,
  fill: ReturnType<typeof filling>,
): Promise<void> {
  const handle = await fs.open(path, "w");
  try {
    await fill(handle);
  } finally {
    await handle.close();
  }
}
