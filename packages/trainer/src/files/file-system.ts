import * as nodeFileSystem from "node:fs/promises";
import type { ByteSink } from "@halfstep/safetensors";

/** The functions of `node:fs/promises` that writing uses. Tests make each of them fail in turn. */
export type FileSystem = Pick<
  typeof nodeFileSystem,
  "open" | "mkdir" | "rename" | "rm" | "readdir"
>;

export { nodeFileSystem };

/** Text in UTF-8, bytes, or a function that writes bytes to a sink. */
export type FileContent = string | Uint8Array | ((sink: ByteSink) => Promise<unknown>);

/**
 * Writes a new file and flushes it to the disk. Returns the result of `fill`.
 * @throws the system's error; EEXIST where the file exists
 */
export async function writeNewFile<T>(
  fs: FileSystem,
  path: string,
  fill: (sink: ByteSink) => Promise<T>,
  mode?: number,
): Promise<T> {
  const handle = await fs.open(path, "wx");
  try {
    const result = await fill(handle);
    if (mode !== undefined) await handle.chmod(mode);
    await handle.sync();
    return result;
  } finally {
    await handle.close();
  }
}

/** The function that writes a content to a sink. */
export const filling = (content: FileContent): ((sink: ByteSink) => Promise<unknown>) => {
  if (typeof content === "function") return content;
  const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
  return async (sink) => {
    // A nearly full disk may write only a part; the next write then fails.
    for (let at = 0; at < bytes.length; ) at += (await sink.write(bytes.subarray(at))).bytesWritten;
  };
};

/**
 * Makes renames within a folder durable.
 * @throws the system's error
 */
export async function syncDirectory(fs: FileSystem, path: string): Promise<void> {
  // Windows cannot flush folders; its file system orders the writes itself.
  if (process.platform === "win32") return;
  const handle = await fs.open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
