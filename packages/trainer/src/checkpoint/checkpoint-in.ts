import { existsSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import type { Checkpoint } from "./checkpoint.js";
import { CheckpointError } from "./checkpoint-error.js";
import { CheckpointFolder } from "./checkpoint-folder.js";
import { manifestName } from "./manifest.js";
import { readCheckpoint } from "./read-checkpoint.js";

/**
 * The checkpoint of a folder to predict with. Of a run folder it is the best, or the newest whole one where none was marked as
 * the best. Of the folder of a checkpoint it is that checkpoint.
 * @throws CheckpointError in one line: the folder does not exist, or has no whole checkpoint
 */
export async function checkpointIn(directory: string): Promise<Checkpoint> {
  const isCheckpoint = existsSync(join(directory, manifestName));
  if (isCheckpoint || /^step-\d+/.test(basename(directory))) return readCheckpoint(directory);
  const isFolder = statSync(directory, { throwIfNoEntry: false })?.isDirectory();
  if (isFolder) {
    const folder = new CheckpointFolder(join(directory, "checkpoints"));
    const checkpoint = (await folder.best()) ?? (await folder.newest()).checkpoint;
    if (checkpoint) return checkpoint;
  }
  const fact =
    isFolder === undefined ? "is not there" : isFolder ? "has no checkpoint" : "is a file";
  throw new CheckpointError(
    "not-found",
    directory,
    `${fact}: train first, or name the folder of a run or of a checkpoint`,
  );
}
