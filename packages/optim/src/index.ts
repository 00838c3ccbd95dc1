export { averageGradients } from "./accumulation.js";
export { Adadelta, type AdadeltaGroupOptions, type AdadeltaOptions } from "./adadelta.js";
export { Adafactor, type AdafactorGroupOptions, type AdafactorOptions } from "./adafactor.js";
export { Adagrad, type AdagradGroupOptions, type AdagradOptions } from "./adagrad.js";
export { Adam, type AdamGroupOptions, type AdamOptions } from "./adam.js";
export { Adamax, type AdamaxGroupOptions, type AdamaxOptions } from "./adamax.js";
export { AdamW, type AdamWGroupOptions, type AdamWOptions } from "./adamw.js";
export type {
  Algorithm,
  CommonOptions,
  GradientAdaptation,
  GroupInput,
  OptimizerOptions,
  ParameterGroup,
  StepOptions,
} from "./algorithm.js";
export { ASGD, type ASGDGroupOptions, type ASGDOptions } from "./asgd.js";
export {
  type AverageStateDict,
  type GroupAverageDict,
  ParameterAverage,
  type Watchable,
  type WatchedOptimizer,
} from "./average.js";
export {
  BertAdam,
  type BertAdamGroupOptions,
  type BertAdamOptions,
  type BertSchedule,
} from "./bert-adam.js";
export {
  type ClipOptions,
  type ClippableOptimizer,
  clipGradNorm,
  clipGradNormPerGroup,
  clipGradValue,
  type GradientNorm,
} from "./clip.js";
export {
  ExponentialMovingAverage,
  type ExponentialMovingAverageOptions,
} from "./ema.js";
export {
  AverageStateError,
  NonFiniteGradientError,
  OptimizerStateError,
  ShardError,
} from "./errors.js";
export { FlatOptimizer } from "./flat-optimizer.js";
export { type FlatTensors, flatTensors, type Segment } from "./flat-tensors.js";
export { FP16Optimizer } from "./fp16-optimizer.js";
export type {
  BackwardMasterOptions,
  DifferentiableLoss,
  DynamicLossArgs,
  FP16OptimizerOptions,
  MasterGradNorm,
} from "./fp16-optimizer-options.js";
export type { FP16OptimizerStateDict, Masters } from "./fp16-optimizer-state.js";
export type { ExtensionStep, GroupExtension, MakeExtension } from "./group-extension.js";
export type { MomentFormat } from "./group-state.js";
export { LAMB, type LAMBGroupOptions, type LAMBOptions } from "./lamb.js";
export { LARC, type LARCOptions } from "./larc.js";
export { Lion, type LionGroupOptions, type LionOptions } from "./lion.js";
export {
  LostUpdateMeter,
  type LostUpdateOptions,
  type LostUpdateReport,
  type TensorUpdateLosses,
  type UpdateLosses,
} from "./lost-updates.js";
export { Muon, type MuonGroupOptions, type MuonOptions } from "./muon.js";
export { NAdam, type NAdamGroupOptions, type NAdamOptions } from "./nadam.js";
export { NovoGrad, type NovoGradGroupOptions, type NovoGradOptions } from "./novograd.js";
export type { ParameterStorage } from "./parameter-storage.js";
export { RAdam, type RAdamGroupOptions, type RAdamOptions } from "./radam.js";
export type { RateColumns } from "./rate-table.js";
export { RMSprop, type RMSpropGroupOptions, type RMSpropOptions } from "./rmsprop.js";
export { Rprop, type RpropGroupOptions, type RpropOptions } from "./rprop.js";
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
export type { Shard, ShardPart, ShardWords } from "./shard.js";
export type { GroupStateDict, OptimizerStateDict } from "./state-dict.js";
export type { GroupStep, KeptGroup, StepObserver, WritableGroup } from "./step-observer.js";
export { StochasticWeightAverage } from "./swa.js";
