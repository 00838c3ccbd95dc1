export type {
  Checkpoint,
  CheckpointContent,
  CheckpointStore,
  NewestCheckpoint,
} from "./checkpoint/checkpoint.js";
export { CheckpointError, type CheckpointProblem } from "./checkpoint/checkpoint-error.js";
export { StorageError } from "./errors.js";
export { type EvaluateOptions, type Evaluation, evaluate } from "./evaluate.js";
export { parameterSha256 } from "./parameter-hash.js";
export {
  inPrecision,
  recipeFor,
  scalerOptionsFor,
  storageFor,
  type TrainingPrecision,
} from "./precision.js";
export { renderReport } from "./report.js";
export type {
  Precision,
  RunDevice,
  RunSummary,
  StepCounters,
  StepMetrics,
  Summary,
} from "./summary.js";
export {
  reportInterval,
  type TrainableOptimizer,
  type TrainOptions,
  type TrainResult,
  train,
} from "./train.js";
