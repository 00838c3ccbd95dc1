export {
  addAdapter,
  type PeftAdapter,
  type PeftDescription,
  readPeftAdapter,
  writePeftAdapter,
} from "./adapters/peft-adapter.js";
export { CheckpointFolder, type CheckpointFolderOptions } from "./checkpoint/checkpoint-folder.js";
export { checkpointIn } from "./checkpoint/checkpoint-in.js";
export { readCheckpoint } from "./checkpoint/read-checkpoint.js";
export { encodePng, type PngPixels } from "./encode-png.js";
export type { FileContent, FileSystem } from "./files/file-system.js";
export { type WholeFileOptions, writeWholeFile } from "./files/whole-file.js";
export { type NewFolder, writeWholeFolder } from "./files/whole-folder.js";
export {
  describeProgress,
  type Progress,
  type ProgressOptions,
  type ProgressStream,
  type TrainingProgress,
  trainingProgress,
} from "./progress.js";
export { isRunSummary, readSummary } from "./read-summary.js";
export { resultsTable } from "./results-table.js";
export { type LogState, RunFolder, type RunFolderOptions } from "./run-folder.js";
export { RunLock } from "./run-lock.js";
export { type StopSignalOptions, type StopSignals, stopSignals } from "./stop-signals.js";
export {
  type TensorBoardLog,
  type TensorBoardOptions,
  tensorBoardLog,
} from "./tensorboard/tensorboard-log.js";
export type { MetricsSink, TrackedRun, Tracker } from "./trackers/metrics-sink.js";
export { type MlflowOptions, mlflowTracker } from "./trackers/mlflow.js";
export { type OpenTelemetryOptions, openTelemetryTracker } from "./trackers/open-telemetry.js";
export { MissingPackageError } from "./trackers/peer-package.js";
export { type WandbOptions, wandbTracker } from "./trackers/wandb.js";
export { readWeights } from "./weights/read-weights.js";
