import { randomBytes } from "node:crypto";
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { SafetensorsError } from "./error.js";
import { headerLength, parseHeader, prefixBytes, type ReadOptions } from "./header.js";
import type { Named } from "./layout.js";
import { allocate, type SafetensorsInfo, type SafetensorsTensor, tensorOver } from "./tensor.js";
import { type DeferredTensor, prepareWrite, type WriteOptions } from "./write.js";

export { readShardIndex } from "./shard-index.js";

/** Options of writing a safetensors file as a whole. */
export interface WriteFileOptions extends WriteOptions {
  /** Looks at the finished file before it takes its place. If it throws, an existing file does not change. */
  readonly inspect?: (file: SafetensorsFile) => Promise<void>;
}

/** What is needed of a Node `FileHandle` to read from it. */
export interface ReadableHandle {
  stat(): Promise<{ readonly size: number }>;
  read(
    into: Uint8Array,
    offset: number,
    length: number,
    position: number,
  ): Promise<{ readonly bytesRead: number }>;
}

/** A file whose header has been read and checked, and whose tensors are read when asked for. */
export interface SafetensorsFile extends AsyncDisposable {
  /** The `__metadata__` of the file; empty where it has none. No prototype. */
  readonly metadata: Readonly<Record<string, string>>;
  /** What the file has, by name, in the order of the data. No prototype. */
  readonly tensors: Readonly<Record<string, SafetensorsInfo>>;
  /**
   * Reads one tensor into memory of its own.
   * @throws SafetensorsError when the file has none of that name, or has been cut since it was opened
   */
  read(name: string): Promise<SafetensorsTensor>;
  /** Reads these tensors, or all, one after the other. */
  readAll(names?: Iterable<string>): Promise<Record<string, SafetensorsTensor>>;
  /** Closes a file that was opened by its path; a handle that was passed in stays open. */
  close(): Promise<void>;
}

/**
 * Opens a safetensors file, by its path or a handle, and reads its header and nothing else.
 * @throws SafetensorsError when the file is malformed: no more than its header has been allocated then
 * @throws the system's error (with `code`) when it cannot be read
 *
 * @example
 * await using file = await openSafetensors("model.safetensors");
 * const { shape, data } = await file.read("fc.weight");
 */
export async function openSafetensors(
  file: string | URL | ReadableHandle,
  options: ReadOptions = {},
): Promise<SafetensorsFile> {
  if (typeof file !== "string" && !(file instanceof URL)) return fileOver(file, options);
  const handle = await open(file, "r");
  try {
    return await fileOver(handle, { source: String(file), ...options }, handle);
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/**
 * Writes a safetensors file that appears whole or not at all: it is written next to its path, flushed to the disk and renamed, so that a
 * full disk leaves an existing file unchanged. To write to a handle, use `writeSafetensorsTo`.
 * @throws SafetensorsError when something cannot be stored
 * @throws the system's error (with `code`) when the file cannot be written
 */
export async function writeSafetensorsFile(
  path: string | URL,
  tensors: Named<SafetensorsTensor | DeferredTensor>,
  options: WriteFileOptions = {},
): Promise<void> {
  const write = prepareWrite(tensors, options);
  const target = path instanceof URL ? fileURLToPath(path) : path;
  const partial = `${target}.${randomBytes(4).toString("hex")}.partial`;
  const handle = await open(partial, "wx");
  try {
    try {
      await write(handle);
      await handle.sync();
    } finally {
      await handle.close();
    }
    if (options.inspect) {
      const written = await openSafetensors(partial);
      try {
        await options.inspect(written);
      } finally {
        await written.close();
      }
    }
    await rename(partial, target);
  } catch (error) {
    // What was begun takes up room that a full disk has not.
    await rm(partial, { force: true }).catch(() => {});
    throw error;
  }
}

async function fileOver(
  handle: ReadableHandle,
  options: ReadOptions,
  owned?: FileHandle,
): Promise<SafetensorsFile> {
  const { source } = options;
  const { size } = await handle.stat();
  const prefix = await readAt(handle, 0, Math.min(size, prefixBytes), { source });
  const length = headerLength(prefix, size, options);
  const json = await readAt(handle, prefixBytes, length, { source });
  const { metadata, tensors } = parseHeader(json, size, source);

  const read = async (name: string): Promise<SafetensorsTensor> => {
    const info = tensors[name];
    if (info === undefined)
      throw new SafetensorsError("unknown-tensor", "the file has none of that name", {
        source,
        tensor: name,
      });
    const bytes = await readAt(handle, info.byteOffset, info.byteLength, { source, tensor: name });
    return tensorOver(info, bytes.buffer, 0);
  };
  const close = async (): Promise<void> => owned?.close();
  return {
    metadata,
    tensors,
    read,
    readAll: async (names = Object.keys(tensors)) => {
      const all: Record<string, SafetensorsTensor> = Object.create(null);
      for (const name of names) all[name] = await read(name);
      return all;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

// Node reads no more than 2^31 − 1 bytes at once.
const pieceBytes = 2 ** 30;

async function readAt(
  handle: ReadableHandle,
  position: number,
  byteLength: number,
  place: { readonly source: string | undefined; readonly tensor?: string },
): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = allocate(byteLength, place);
  for (let at = 0; at < byteLength; ) {
    const length = Math.min(byteLength - at, pieceBytes);
    const { bytesRead } = await handle.read(bytes, at, length, position + at);
    if (bytesRead === 0)
      throw new SafetensorsError(
        "truncated",
        "the file ends here, and was longer when it was opened",
        { ...place, offset: position + at },
      );
    at += bytesRead;
  }
  return bytes;
}
