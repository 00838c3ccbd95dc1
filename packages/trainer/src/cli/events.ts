import { rmSync } from "node:fs";
import { join } from "node:path";
import type { Checkpoint } from "../checkpoint/checkpoint.js";
import { storing } from "../errors.js";
import { type TensorBoardLog, tensorBoardLog } from "../tensorboard/tensorboard-log.js";

/** A hook that writes event files of TensorBoard. */
export type EventsHook = Omit<TensorBoardLog, "scalar">;

/**
 * The hook of `--tensorboard`, under the name `tensorBoard`: event files in `out/tensorboard/label`. `openRun()` includes it; programs
 * that train several times make one for each run.
 * @param checkpoint from which training continues
 * @throws StorageError
 */
export function eventsOf(out: string, label: string, checkpoint?: Checkpoint): EventsHook {
  const log = tensorBoardLog(join(folderIn(out), label));
  const { loadStateDict: _, ...withoutState } = log;
  // The flag may be new with --resume: the checkpoint then has no state of it.
  return checkpoint && !hasHook(checkpoint, "tensorBoard") ? withoutState : log;
}

/** Removes event files of an earlier run, which TensorBoard would mix with those of the new run. @throws StorageError */
export function removeEvents(out: string): void {
  const folder = folderIn(out);
  storing(folder, () => rmSync(folder, { recursive: true, force: true }));
}

const folderIn = (out: string): string => join(out, "tensorboard");

/** Whether a checkpoint has the state of a hook. */
export const hasHook = ({ parts: { hooks } }: Checkpoint, name: string): boolean =>
  typeof hooks === "object" && hooks !== null && Object.hasOwn(hooks, name);
