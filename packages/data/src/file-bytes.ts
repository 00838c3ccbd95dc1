import { constants, type Stats } from "node:fs";
import { type FileHandle, open, stat } from "node:fs/promises";
import { requireOptions } from "./checks.js";
import { DataError } from "./error.js";
import { unreadable } from "./unreadable.js";

/** Node reads no more than this at once. */
const mostBytes = 2 ** 31 - 1;

/** Options of reading a file's bytes. */
export interface FileBytesOptions {
  /** The most bytes that such a file has; a longer one is refused before anything is allocated. Default 2³¹ − 1. */
  readonly most?: number;
}

/**
 * Reads all bytes of a file. Anything but a regular file (a folder, a FIFO, a socket, a device) is refused without waiting, and so
 * is a file longer than `most`.
 * @throws DataError
 *
 * @example
 * const config = JSON.parse(new TextDecoder().decode(await fileBytes("config.json", { most: 2 ** 20 })));
 */
export async function fileBytes(
  path: string,
  options: FileBytesOptions = {},
): Promise<Uint8Array<ArrayBuffer>> {
  requireOptions("fileBytes", options, ["most"]);
  const { most = mostBytes } = options;
  return withFile(path, async (file) => {
    if (file.size > most)
      throw new DataError(path, `has ${file.size} bytes, and at most ${most} are read`);
    return file.read(file.size);
  });
}

/** A regular file that is open. */
export interface OpenFile {
  /** Bytes. */
  readonly size: number;
  /** The first bytes: as many as are asked for, or all. */
  read(length: number): Promise<Uint8Array<ArrayBuffer>>;
}

/**
 * Opens a regular file, and closes it when `use` is done.
 * @throws DataError where it is none, or cannot be read
 */
export async function withFile<T>(path: string, use: (file: OpenFile) => Promise<T>): Promise<T> {
  let handle: FileHandle | undefined;
  try {
    // Checked before opening: opening a FIFO waits for its writer, and opening a device may have any effect.
    requireRegular(path, await stat(path));
    handle = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    const { size } = requireRegular(path, await handle.stat());
    const reading = handle;
    return await use({ size, read: (length) => readFirst(path, reading, Math.min(length, size)) });
  } catch (error) {
    throw error instanceof DataError ? error : unreadable(path, error);
  } finally {
    await handle?.close();
  }
}

async function readFirst(
  path: string,
  handle: FileHandle,
  length: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = new Uint8Array(length);
  for (let at = 0; at < length; ) {
    const { bytesRead } = await handle.read(bytes, at, length - at, at);
    if (bytesRead === 0)
      throw new DataError(path, `became shorter while it was read: ${at} bytes of ${length}`);
    at += bytesRead;
  }
  return bytes;
}

function requireRegular(path: string, stats: Stats): Stats {
  const kind = irregular(stats);
  if (kind !== undefined) throw new DataError(path, `is ${kind}: name a file`);
  return stats;
}

/** The kind of a path that is not a regular file, with its article; undefined for a regular file. */
export const irregular = (
  entry: Pick<
    Stats,
    "isFile" | "isDirectory" | "isFIFO" | "isSocket" | "isCharacterDevice" | "isBlockDevice"
  >,
): string | undefined => {
  if (entry.isFile()) return undefined;
  if (entry.isDirectory()) return "a folder";
  if (entry.isFIFO()) return "a FIFO";
  if (entry.isSocket()) return "a socket";
  if (entry.isCharacterDevice() || entry.isBlockDevice()) return "a device";
  return "no file";
};
