import { join } from "node:path";
import {
  type Checkpoint,
  CheckpointError,
  type RunSummary,
  type Stateful,
  savedData,
} from "@halfstep/trainer";
import { requireSettings, type Settings } from "@halfstep/trainer/cli";
import { CheckpointFolder, isRunSummary } from "@halfstep/trainer/node";
import { precisions, type TrainCommand } from "./options.js";

export const settingsOf = (options: TrainCommand, images: number): Settings => ({
  precision: options.precision,
  epochs: options.epochs,
  "batch-size": options.batchSize,
  lr: options.lr,
  seed: options.seed,
  "static-loss-scale": options.staticLossScale ?? null,
  "init-scale": options.initScale,
  limit: images,
  pretrained: options.pretrained ?? null,
  key: options.key ?? null,
  "class-weights": options.classWeights ?? null,
  "label-smoothing": options.labelSmoothing,
});

/** The checkpoints of one precision. */
export const checkpointsOf = (out: string, precision: string): CheckpointFolder =>
  new CheckpointFolder(join(out, "checkpoints", precision));

/**
 * The stores from which a run with the options may resume, the last of its precisions last. Stores of other precisions come
 * first: their checkpoints belong to another run, which a resumed run must not replace.
 */
export const storesOf = ({ out, precision }: TrainCommand): readonly CheckpointFolder[] =>
  [...precisions.filter((name) => !precision.includes(name)), ...precision].map((name) =>
    checkpointsOf(out, name),
  );

/** The summaries of the precisions that are done, as a part of checkpoints. Resuming reads them before a run exists. */
export const savedRuns = (done: readonly RunSummary[]): Stateful => savedData([...done]);

/**
 * The summaries of the precisions that were done when a checkpoint was saved.
 * @throws CheckpointError where it was saved with other flags
 */
export function runsDone(checkpoint: Checkpoint, settings: Settings): readonly RunSummary[] {
  const longer = requireSettings(checkpoint, settings);
  const { path, parts } = checkpoint;
  if (!Array.isArray(parts.runs) || !parts.runs.every(isRunSummary))
    throw new CheckpointError("misfit", path, "was not saved by this program");
  if (longer.length > 0 && parts.runs.length > 0)
    throw new CheckpointError(
      "misfit",
      path,
      `comes after precisions that are done, which ${longer.join(", ")} would leave shorter: train one precision longer (--precision), or anew`,
    );
  return parts.runs;
}
