import * as nodeFileSystem from "node:fs/promises";
import type { ByteSink } from "@halfstep/safetensors";

/** What writing needs of `node:fs/promises`. Tests let each of its operations fail in turn. */
export type FileSystem = Pick<
  typeof nodeFileSystem,
  "open" | "mkdir" | "rename" | "rm" | "readdir"
>;

export { nodeFileSystem };

/** Text in UTF-8, bytes, or a function that hands the bytes to a sink. */
export type FileContent = string | Uint8Array | ((sink: ByteSink) => Promise<unknown>);

/**
 * Writes a new file and flushes it to the disk. Returns what `fill` does.
 * @throws the system's error, EEXIST where there is a file already
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

/** The function that hands a content to a sink. */
export const filling = (content: FileContent): ((sink: ByteSink) => Promise<unknown>) => {
  if (typeof content === "function") return content;
  const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
  return async (sink) => {
    // A disk that is nearly full takes a part, and says so with the next.
    for (let at = 0; at < bytes.length; ) at += (await sink.write(bytes.subarray(at))).bytesWritten;
  };
};

/**
 * Makes renames within a folder outlive a power cut.
 * @throws the system's error
 */
export async function syncDirectory(fs: FileSystem, path: string): Promise<void> {
  // Windows cannot flush folders, and has its file system order the writes itself.
  if (process.platform === "win32") return;
  const handle = await fs.open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
