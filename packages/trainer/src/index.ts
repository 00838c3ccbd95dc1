export { type AdapterOptions, type AdapterSettings, adaptersFor } from "./adapters/adapters-for.js";
export type { Batches } from "./batch-source.js";
export type {
  Checkpoint,
  CheckpointContent,
  CheckpointStore,
  NewestCheckpoint,
} from "./checkpoint/checkpoint.js";
export type {
  CheckpointArchive,
  CheckpointArchiveOptions,
} from "./checkpoint/checkpoint-archive.js";
export { CheckpointError, type CheckpointProblem } from "./checkpoint/checkpoint-error.js";
export { loadModel, modelState } from "./checkpoint/load-model.js";
export { memoryCheckpoints } from "./checkpoint/memory-checkpoints.js";
export { savedRecipe } from "./checkpoint/saved-recipe.js";
export {
  balancedPositives,
  balancedWeights,
  describeImbalance,
} from "./classification/class-balance.js";
export {
  type ClassificationLoss,
  classificationLoss,
  ignoredLabel,
  labelSetLoss,
} from "./classification/classification-loss.js";
export { type ClassScore, ConfusionMatrix, macroF1 } from "./classification/confusion-matrix.js";
export { LabelSetCounts, type LabelSetFigures } from "./classification/label-sets.js";
export type { Job } from "./cli/job.js";
export { DivergenceError, StorageError } from "./errors.js";
export {
  type EvaluateOptions,
  type Evaluation,
  evaluate,
  type TopKEvaluation,
} from "./evaluate.js";
export {
  type EvaluatedAt,
  type EvaluationHook,
  type EvaluationOptions,
  type EvaluationState,
  type Every,
  evaluateEvery,
  type Training,
  type TrainingHook,
} from "./hooks.js";
export {
  type BatchShare,
  type ExchangeMode,
  type JobExchange,
  type JobExchangeOptions,
  jobExchange,
  type ReducedStep,
} from "./job-exchange.js";
export { parameterSha256 } from "./parameter-hash.js";
export {
  inPrecision,
  type LossScaleFlags,
  recipeFor,
  scalerOptionsFor,
  storageFor,
  type TrainingPrecision,
} from "./precision.js";
export {
  Predictor,
  type PredictorOptions,
  type PredictorUsage,
  type Row,
} from "./predictor.js";
export { reportInterval } from "./reporter.js";
export { type ContextCheckpoints, type RunContext, withParts } from "./run-context.js";
export { type RunSummaryOptions, runSummary } from "./run-summary.js";
export {
  type SeededGenerator,
  type Stateful,
  type StatefulModel,
  savedData,
  savedGenerator,
} from "./stateful.js";
export {
  missingRuns,
  pairedDifference,
  type Spread,
  type Study,
  type StudyOutcome,
  type StudyRun,
  spreadOf,
} from "./study.js";
export { renderStudy } from "./study-report.js";
export {
  type EvaluationMetrics,
  type Hyperparameters,
  isEvaluation,
  type Machine,
  type MetricsLine,
  type PhaseCost,
  type PhaseCosts,
  type PhaseName,
  type Precision,
  type RunDevice,
  type RunSummary,
  type Settings,
  type SettingValue,
  type StepCounters,
  type StepMetrics,
  type Summary,
  type TestResult,
  type Versions,
} from "./summary.js";
export {
  type TrainableOptimizer,
  type TrainOptions,
  type TrainResult,
  train,
} from "./train.js";
export type { TrainingCheckpoints, TrainingParts } from "./training-state.js";
export { auditRange, noteRange, type RangeAudit, type TensorRange } from "./weights/audit-range.js";
export { loadPretrained, type PretrainedWeights } from "./weights/load-pretrained.js";
export { loadWeights } from "./weights/load-weights.js";
export { safetensorsOf, stateDictOf } from "./weights/state-dict.js";
