import { existsSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import type { Checkpoint } from "./checkpoint.js";
import { CheckpointError } from "./checkpoint-error.js";
import { CheckpointFolder } from "./checkpoint-folder.js";
import { manifestName } from "./manifest.js";
import { readCheckpoint } from "./read-checkpoint.js";

/**
 * The checkpoint that whoever predicts wants of a folder: of a run folder the best, or the newest that is whole where none was
 * marked as the best; of the folder of a checkpoint this one.
 * @throws CheckpointError in one line: there is no such folder, it has no checkpoint, or none that is whole
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
