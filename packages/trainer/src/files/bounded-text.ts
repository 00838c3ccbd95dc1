import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { CheckpointError } from "../checkpoint/checkpoint-error.js";
import { systemFault } from "../errors.js";

/**
 * The text of a small file from elsewhere; empty for what is no regular file, or a larger one.
 * @throws CheckpointError where it cannot be read
 */
export async function boundedText(path: string, most: number): Promise<string> {
  try {
    // Does not wait if the path is a pipe.
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const stats = await file.stat();
      if (!stats.isFile() || stats.size > most) return "";
      return await file.readFile("utf8");
    } finally {
      await file.close();
    }
  } catch (error) {
    const reason = systemFault(error)?.fact ?? (error as Error).message;
    throw new CheckpointError("unreadable", path, `cannot be read (${reason})`, error);
  }
}
