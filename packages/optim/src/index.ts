export { AdamW, type AdamWGroupOptions, type AdamWOptions } from "./adamw.js";
export {
  type ClipOptions,
  type ClippableOptimizer,
  clipGradNorm,
  type GradientNorm,
} from "./clip.js";
export { NonFiniteGradientError, OptimizerStateError } from "./errors.js";
export {
  type Algorithm,
  type CommonOptions,
  FlatOptimizer,
  type GroupInput,
  type ParameterGroup,
  type ParameterStorage,
  type StepOptions,
  type UpdateOperands,
} from "./flat-optimizer.js";
export { type FlatTensors, flatTensors, type Segment } from "./flat-tensors.js";
export type { RateColumns } from "./rate-table.js";
export {
  constant,
  cosine,
  type LearningRate,
  linearWarmup,
  type OneCycleOptions,
  oneCycle,
  type Schedule,
} from "./schedule.js";
export { SGD, type SGDGroupOptions, type SGDOptions } from "./sgd.js";
export type { GroupStateDict, OptimizerStateDict } from "./state-dict.js";
