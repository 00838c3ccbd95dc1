export { Adam, type AdamGroupOptions, type AdamOptions } from "./adam.js";
export { AdamW, type AdamWGroupOptions, type AdamWOptions } from "./adamw.js";
export {
  type ClipOptions,
  type ClippableOptimizer,
  clipGradNorm,
  clipGradNormPerGroup,
  clipGradValue,
  type GradientNorm,
} from "./clip.js";
export { NonFiniteGradientError, OptimizerStateError } from "./errors.js";
export {
  type Algorithm,
  type CommonOptions,
  FlatOptimizer,
  type GradientAdaptation,
  type GroupInput,
  type OptimizerOptions,
  type ParameterGroup,
  type StepOptions,
} from "./flat-optimizer.js";
export { type FlatTensors, flatTensors, type Segment } from "./flat-tensors.js";
export type { MomentFormat } from "./group-state.js";
export type { ParameterStorage } from "./parameter-storage.js";
export type { RateColumns } from "./rate-table.js";
export type { SavedArray, SavedArrays } from "./saved-buffer.js";
export { chained, sequential } from "./schedules/compose.js";
export {
  type CyclicOptions,
  cosineRestarts,
  cyclic,
  type OneCycleOptions,
  oneCycle,
} from "./schedules/cyclic.js";
export {
  constant,
  cosine,
  exponential,
  linear,
  multiStep,
  polynomial,
  stepDecay,
} from "./schedules/decay.js";
export {
  type PlateauState,
  ReduceOnPlateau,
  type ReduceOnPlateauOptions,
  type ScheduledGroup,
} from "./schedules/plateau.js";
export type { LearningRate, Schedule } from "./schedules/schedule.js";
export {
  type BertWarmupOptions,
  imagenet,
  linearWarmup,
  warmupConstant,
  warmupCosine,
  warmupLinear,
} from "./schedules/warmup.js";
export { SGD, type SGDGroupOptions, type SGDOptions } from "./sgd.js";
export type { GroupStateDict, OptimizerStateDict } from "./state-dict.js";
