import { randomBytes } from "node:crypto";
import { open, rename, rm } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { ReadOptions } from "./header.js";
import { requireKnown } from "./known-options.js";
import type { Named } from "./layout.js";
import { fileOver, type ReadableHandle, type SafetensorsFile } from "./open.js";
import type { SafetensorsTensor } from "./tensor.js";
import { type DeferredTensor, prepareWrite, type WriteOptions } from "./write.js";

export type { ReadableHandle, SafetensorsFile } from "./open.js";
export { readShardIndex } from "./shard-index.js";

/** Options of writing a safetensors file as a whole. */
export interface WriteFileOptions extends WriteOptions {
  /** Looks at the finished file before it takes its place. If it throws, an existing file does not change. */
  readonly inspect?: (file: SafetensorsFile) => Promise<void>;
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
    return await fileOver(handle, { source: String(file), ...options }, () => handle.close());
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
  requireKnown("writeSafetensorsFile", options, ["metadata", "inspect"]);
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
