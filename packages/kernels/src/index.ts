export { type AddRowsAttributes, addRows, putRows } from "./add-rows.js";
export { ampPrimitives, type KernelAmpPrimitives, type ScaledGradient } from "./amp-primitives.js";
export { argmax } from "./argmax.js";
export { accumulate, assignUnless } from "./assign.js";
export { attention } from "./attention/forward.js";
export { attentionKeyValueGradient } from "./attention/key-value-gradient.js";
export type { AttentionGradientOperands, AttentionOperands } from "./attention/operands.js";
export {
  type AttentionProbabilitiesAttributes,
  attentionProbabilities,
  attentionProbabilitiesBackward,
} from "./attention/probabilities.js";
export { attentionQueryGradient } from "./attention/query-gradient.js";
export {
  type AttentionAttributes,
  type AttentionMask,
  type AttentionMaskKind,
  type AttentionShape,
  attentionMask,
  maxAttentionSize,
} from "./attention/shape.js";
export { attentionStatistics } from "./attention/statistics.js";
export {
  averageControl,
  averageControlLength,
  averageParameters,
  copyBits,
  exactParameters,
  type KeptParameters,
} from "./average.js";
export { averageSums } from "./average-sums.js";
export {
  type BatchNormNormalizeAttributes,
  batchNormNormalize,
  batchNormUpdateRunning,
} from "./batch-norm.js";
export { batchNormBackward } from "./batch-norm-backward.js";
export { type BatchNormShape, batchNormStatistics } from "./batch-norm-statistics.js";
export { checkFinite, type SquareSums } from "./check-finite.js";
export { clampGradients, clipGradients } from "./clip-gradients.js";
export { combineFlags } from "./combine-flags.js";
export {
  type ConcatenateAttributes,
  concatenate,
  concatenatedStarts,
  maxConcatenated,
} from "./concatenate.js";
export {
  type Conv2dAttributes,
  conv2d,
  conv2dInputGradient,
  conv2dOutputSize,
  conv2dWeightGradient,
} from "./conv2d.js";
export {
  type CpuBuffer,
  type CpuTarget,
  type CpuTargetOptions,
  cpuTarget,
  runOnCpu,
} from "./cpu.js";
export { type CrfLossOperands, crfLoss } from "./crf/loss.js";
export { type CrfLossBackwardOperands, crfLossBackward } from "./crf/loss-backward.js";
export { type CrfOperands, type CrfShape, maxCrfTags } from "./crf/shape.js";
export { type CrfDecodeOperands, crfDecode } from "./crf/viterbi.js";
export {
  type CrossEntropyAttributes,
  softmaxCrossEntropy,
  softmaxCrossEntropyBackward,
} from "./cross-entropy.js";
export {
  type ElementwiseKernel,
  type ElementwiseProgram,
  type ElementwiseStep,
  type Expression,
  elementwise,
  elementwiseKernel,
  isElementwise,
  type ShapedBinding,
} from "./elementwise.js";
export { type Epilogue, type ProductKernel, takesEpilogue, withEpilogue } from "./epilogue.js";
export { countExponents } from "./exponent-histogram.js";
export * from "./expressions.js";
export { fill } from "./fill.js";
export { decodeFound, findNonFinite, nothingFound } from "./find-non-finite.js";
export { type GatherAttributes, gather } from "./gather.js";
export { gradientNorm, gradientNormScratchBytes } from "./gradient-norm.js";
export type { Indexing } from "./indexing.js";
export { defineKernel, type KernelDefinition, linearMain, linearWorkgroups } from "./kernel.js";
export { labelCounts } from "./losses/label-counts.js";
export { labelWeights, type NllAttributes, nllLoss, nllLossBackward } from "./losses/nll.js";
export {
  countLostUpdates,
  type DerivedKind,
  errorUnit,
  lostUpdateCounts,
  lostUpdateWords,
  storeParameters,
} from "./lost-updates.js";
export { kernelTable } from "./matmul/block-table.js";
export { type MatmulAttributes, type MatmulOperands, matmul } from "./matmul.js";
export { normBackward } from "./norms/backward.js";
export { normNormalize } from "./norms/normalize.js";
export type { NormShape, NormStatistics } from "./norms/shape.js";
export { normStatistics } from "./norms/statistics.js";
export * from "./optimizers/index.js";
export { type PermuteAttributes, permute } from "./permute.js";
export { avgPool2d, avgPool2dBackward } from "./pool/avg-pool.js";
export { maxPool2d, maxPool2dBackward } from "./pool/max-pool.js";
export { type PoolAttributes, poolOutputSize } from "./pool/shape.js";
export { bernoulli, dropout, normal, type RandomSource, uniform } from "./random.js";
export { type ReduceAttributes, type ReduceOp, reduce } from "./reduce.js";
export {
  type ResampleAttributes,
  type ResampleMode,
  resample,
  resampleBackward,
} from "./resample.js";
export {
  allocateResident,
  type DeviceTarget,
  deviceTarget,
  type ResidentTarget,
} from "./resident-target.js";
export { type ScanAttributes, type ScanOp, scan } from "./scan.js";
export { type ScatterAttributes, scatter } from "./scatter.js";
export {
  logSoftmax,
  logSoftmaxBackward,
  type RowsAttributes,
  type SoftmaxBackwardOperands,
  softmax,
  softmaxBackward,
} from "./softmax.js";
export {
  type CopiedDimension,
  contiguousStart,
  type StridedCopyAttributes,
  stridedCopy,
} from "./strided-copy.js";
export { type TopKAttributes, topK } from "./top-k.js";
export { rescale, unscale } from "./unscale.js";
export { gatherFoundInf, updateScale } from "./update-scale.js";
