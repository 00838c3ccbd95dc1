export {
  clamp,
  elu,
  type GeluOptions,
  gelu,
  hardtanh,
  leakyRelu,
  prelu,
  type RangeOptions,
  relu,
  sigmoid,
  silu,
} from "./activations.js";
export { accumulate, assign } from "./assign.js";
export { type AttentionOptions, scaledDotProductAttention } from "./attention.js";
export {
  type BatchNormOptions,
  batchNormInference,
  type RunningStatistics,
} from "./batch-norm.js";
export {
  type BatchNormResult,
  type BatchNormTrainingOptions,
  batchNorm,
} from "./batch-norm-training.js";
export {
  type Comparison,
  eq,
  ge,
  gt,
  isFiniteNumber,
  isInf,
  isNan,
  keepWhere,
  le,
  logicalAnd,
  logicalNot,
  logicalOr,
  logicalXor,
  lt,
  maskedFill,
  ne,
  where,
} from "./comparison.js";
export { roll, stack } from "./concatenate.js";
export { bilinear, cross, dot, tensordot, vdot } from "./contractions.js";
export { type Conv2dOptions, conv2d } from "./conv2d.js";
export {
  type Conv1dOptions,
  type ConvTranspose1dOptions,
  type ConvTranspose2dOptions,
  conv1d,
  convTranspose1d,
  convTranspose2d,
} from "./convolutions.js";
export {
  type CrfDecoded,
  type CrfOptions,
  type CrfWeights,
  crfDecode,
  crfLogPartition,
  crfLoss,
} from "./crf.js";
export {
  type CosineSimilarityOptions,
  cdist,
  cosineSimilarity,
  dist,
  pdist,
  renorm,
} from "./distances.js";
export { einsum } from "./einsum.js";
export {
  type ArithmeticOp,
  abs,
  add,
  addcdiv,
  addcmul,
  addScalar,
  ceil,
  div,
  floor,
  maximum,
  minimum,
  mul,
  round,
  scale,
  sign,
  sqrt,
  square,
  sub,
} from "./elementwise.js";
export { type GridSamplerOptions, gridSampler } from "./grid-sampler.js";
export {
  type EmbeddingOptions,
  embedding,
  gather,
  type IndexPutOptions,
  indexPut,
  indexSelect,
  oneHot,
  scatter,
  scatterAdd,
} from "./indexing.js";
export { linear } from "./linear.js";
export {
  type BinaryLogitsOptions,
  type BinaryOptions,
  binaryCrossEntropy,
  binaryCrossEntropyWithLogits,
  hingeEmbeddingLoss,
  type MarginOptions,
  softMarginLoss,
} from "./losses/binary.js";
export { type CrossEntropyOptions, crossEntropy } from "./losses/cross-entropy.js";
export type { ElementLoss } from "./losses/element-loss.js";
export {
  cosineEmbeddingLoss,
  type MultiMarginOptions,
  marginRankingLoss,
  multilabelMarginLoss,
  multiMarginLoss,
  type TripletMarginOptions,
  tripletMarginLoss,
} from "./losses/margin.js";
export { type ClassOptions, nllLoss } from "./losses/nll.js";
export type { Reduction, ReductionOptions } from "./losses/reduction.js";
export {
  type GaussianNllOptions,
  gaussianNllLoss,
  type HuberOptions,
  huberLoss,
  type KlDivOptions,
  klDiv,
  l1Loss,
  mseLoss,
  type PoissonNllOptions,
  poissonNllLoss,
  type SmoothL1Options,
  smoothL1Loss,
} from "./losses/regression.js";
export { type MatmulOptions, matmul } from "./matmul.js";
export { groupNorm, layerNorm, type NormOptions, type RmsNormOptions, rmsNorm } from "./norms.js";
export { type AvgPoolOptions, avgPool2d, maxPool2d, type PoolOptions } from "./pool.js";
export {
  type AddProductOptions,
  addbmm,
  addmm,
  addmv,
  addr,
  baddbmm,
  bmm,
  chainMatmul,
  mm,
  mv,
} from "./products.js";
export {
  type BernoulliOptions,
  bernoulli,
  type DropoutOptions,
  dropout,
  type NormalOptions,
  type RandomOptions,
  rand,
  randn,
  type UniformOptions,
} from "./random.js";
export { all, amax, amin, any, prod } from "./reduce.js";
export type { KeepOptions, SumOptions } from "./reduction.js";
export { type CumulateOptions, cumprod, cumsum } from "./scan.js";
export { expand, permute, reshape, squeeze, transpose, unsqueeze } from "./shape.js";
export { argmax, argmin, logSoftmax, type SoftmaxOptions, softmax, softmin } from "./softmax.js";
export {
  type Extremum,
  linalgVectorNorm,
  logsumexp,
  max,
  min,
  norm,
  type ReduceOptions,
  std,
  type VarianceOptions,
  type VectorNormOptions,
  variance,
} from "./statistics.js";
export { mean, sum, sumTo } from "./sums.js";
export { type TopKOptions, topK } from "./top-k.js";
export {
  acos,
  asin,
  atan,
  atan2,
  cos,
  cosh,
  erf,
  erfinv,
  exp,
  expm1,
  log,
  log1p,
  log2,
  log10,
  pow,
  reciprocal,
  rsqrt,
  type SoftplusOptions,
  sin,
  sinh,
  softplus,
  tan,
  tanh,
} from "./transcendental.js";
export {
  type Upsample1dOptions,
  type Upsample3dOptions,
  type UpsampleBilinearOptions,
  type UpsampleNearestOptions,
  type UpsampleOptions,
  upsampleBicubic2d,
  upsampleBilinear2d,
  upsampleLinear1d,
  upsampleNearest1d,
  upsampleNearest2d,
  upsampleNearest3d,
  upsampleTrilinear3d,
} from "./upsample.js";
export {
  cat,
  chunk,
  flip,
  narrow,
  pad,
  type SliceOptions,
  select,
  slice,
  split,
} from "./windows.js";
