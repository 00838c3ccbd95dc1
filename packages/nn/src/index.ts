export { Generator, mseLoss } from "@halfstep/tensor/functional";
export { requireArguments } from "./arguments.js";
export { StateDictError } from "./errors.js";
export { evaluationMode } from "./evaluation-mode.js";
export { castReason, type ExplainedOp, explain, explainOps } from "./explain.js";
export {
  type ForwardHook,
  type ForwardPreHook,
  type GradientHook,
  hookGradient,
  type RemoveHook,
} from "./hooks.js";
export {
  calculateGain,
  defaultUniform,
  type Fans,
  fansOf,
  type Initializer,
  type InitOptions,
  type KaimingOptions,
  kaimingNormal,
  kaimingUniform,
  type Nonlinearity,
  normal,
  uniform,
  xavierNormal,
  xavierUniform,
  zeros,
} from "./init.js";
export {
  ELU,
  GELU,
  Hardtanh,
  LeakyReLU,
  PReLU,
  ReLU,
  Sigmoid,
  SiLU,
  Softplus,
  Tanh,
} from "./layers/activations.js";
export {
  type BatchNorm,
  BatchNorm1d,
  BatchNorm2d,
  BatchNorm3d,
  type BatchNormalization,
  type BatchNormLayerOptions,
} from "./layers/batch-norm.js";
export { ModuleDict, ModuleList } from "./layers/containers.js";
export { ConvTranspose2d, type ConvTranspose2dLayerOptions } from "./layers/conv-transpose2d.js";
export {
  Conv1d,
  type Conv1dLayerOptions,
  ConvTranspose1d,
  type ConvTranspose1dLayerOptions,
} from "./layers/conv1d.js";
export { Conv2d, type Conv2dLayerOptions } from "./layers/conv2d.js";
export { Dropout } from "./layers/dropout.js";
export { Embedding, type EmbeddingLayerOptions } from "./layers/embedding.js";
export { Flatten, type FlattenOptions } from "./layers/flatten.js";
export { Linear, type LinearOptions } from "./layers/linear.js";
export {
  MultiheadAttention,
  type MultiheadAttentionOptions,
} from "./layers/multihead-attention.js";
export {
  type AffineOptions,
  GroupNorm,
  InstanceNorm2d,
  LayerNorm,
  RMSNorm,
} from "./layers/norms.js";
export type { Pair } from "./layers/pair.js";
export { AdaptiveAvgPool2d, PixelShuffle, PixelUnshuffle } from "./layers/pixels.js";
export { AvgPool2d, type AvgPool2dOptions, MaxPool2d, type Pool2dOptions } from "./layers/pool.js";
export {
  AvgPool1d,
  type AvgPool1dLayerOptions,
  MaxPool1d,
  type Pool1dLayerOptions,
} from "./layers/pool1d.js";
export {
  GRU,
  type GRUResult,
  LSTM,
  type LSTMResult,
  type RecurrentOptions,
  type RecurrentStates,
} from "./layers/recurrent.js";
export { type CellOptions, GRUCell, LSTMCell } from "./layers/recurrent-cells.js";
export { Sequential } from "./layers/sequential.js";
export {
  type BatchMoments,
  type BatchStatisticsExchange,
  syncBatchNorm,
} from "./layers/sync-batch-norm.js";
export { Upsample, type UpsampleLayerOptions, type UpsampleMode } from "./layers/upsample.js";
export { Lora, type LoraOptions } from "./lora.js";
export * from "./losses.js";
export {
  buffer,
  type Layer,
  type LoadOptions,
  Module,
  parameter,
  type StoredVariable,
} from "./module.js";
export { applyRecipe } from "./recipe.js";
export {
  describeStateDictKeys,
  type SavedTensor,
  type StateDict,
  type StateDictKeys,
  type StateDictOptions,
} from "./state-dict.js";
export {
  type ElementStatistics,
  type ModuleStatistics,
  type RecordedStatistics,
  readStatistics,
  recordStatistics,
  type StatisticsByModule,
} from "./statistics.js";
export {
  loadTorchStateDict,
  type TorchLayout,
  type TorchPlace,
  torchPlaces,
  torchStateDict,
} from "./torch-layout.js";
