export { accumulating, canAccumulate, storesOnce } from "./accumulating.js";
export {
  ampPrimitives,
  type KernelAmpPrimitives,
  type ScaledGradient,
} from "./amp/amp-primitives.js";
export { checkFinite, isFiniteCheck, type SquareSums } from "./amp/check-finite.js";
export { combineFlags } from "./amp/combine-flags.js";
export { controlAndScale } from "./amp/control-and-scale.js";
export { rescale, unscale } from "./amp/unscale.js";
export { gatherFoundInf, isPlainScaleUpdate, updateScale } from "./amp/update-scale.js";
export { attention } from "./attention/forward.js";
export {
  type HeadLayout,
  type HeadPlace,
  type Heads,
  headsOf,
  withHeadCount,
  withHeads,
} from "./attention/heads.js";
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
export { batchNormBackward } from "./batch-norm/backward.js";
export type { RunningBindings } from "./batch-norm/merge.js";
export { type BatchNormNormalizeAttributes, batchNormNormalize } from "./batch-norm/normalize.js";
export { type BatchNormShape, batchNormStatistics } from "./batch-norm/statistics.js";
export {
  type Conv2dAttributes,
  conv2d,
  conv2dInputGradient,
  conv2dOutputSize,
  conv2dWeightGradient,
} from "./conv2d.js";
export { accumulate, assignUnless, isAccumulation } from "./copies/assign.js";
export {
  type ConcatenateAttributes,
  concatenate,
  concatenatedStarts,
  concatenatedWalks,
  maxConcatenated,
} from "./copies/concatenate.js";
export { copyRowsApart } from "./copies/copy-rows-apart.js";
export { fill } from "./copies/fill.js";
export { type PermuteAttributes, permute } from "./copies/permute.js";
export {
  type CopiedDimension,
  contiguousStart,
  copiedWalk,
  type StridedCopyAttributes,
  stridedCopy,
} from "./copies/strided-copy.js";
export {
  inverseWalk,
  rangesThrough,
  turnsOf,
  type Walk,
  type WalkedDimension,
  type WalkedRange,
} from "./copies/walk.js";
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
export type { Epilogue, KernelDefinition } from "./definition.js";
export { countExponents } from "./diagnostics/exponent-histogram.js";
export { decodeFound, findNonFinite, nothingFound } from "./diagnostics/find-non-finite.js";
export {
  countLostUpdates,
  type DerivedKind,
  errorUnit,
  lostUpdateCounts,
  lostUpdateWords,
  storeParameters,
} from "./diagnostics/lost-updates.js";
export { type Domain, type IntegerDomain, integersOf } from "./domain.js";
export {
  domainsOf,
  type ElementwiseKernel,
  type ElementwiseProgram,
  type ElementwiseStep,
  type Expression,
  elementwise,
  elementwiseKernel,
  isElementwise,
  isRandom,
  type ShapedBinding,
} from "./elementwise.js";
export { type EpilogueOptions, epilogueFits, takesEpilogue, withEpilogue } from "./epilogue.js";
export * from "./expressions.js";
export { type FormulaOptions, formula } from "./formula/formula.js";
export { Condition, constant, leaf, Part, predicate, select, Term } from "./formula/term.js";
export {
  type ElementwiseLaunch,
  type FusedElementwise,
  fuseElementwiseLaunches,
} from "./fused-elementwise.js";
export { type AddRowsAttributes, addRows, putRows } from "./gather-scatter/add-rows.js";
export { type GatherAttributes, gather, isGather } from "./gather-scatter/gather.js";
export { type ScatterAttributes, scatter } from "./gather-scatter/scatter.js";
export { averageSums } from "./gradients/average-sums.js";
export { clampGradients, clipGradients } from "./gradients/clip-gradients.js";
export { gradientNorm, gradientNormScratchBytes } from "./gradients/gradient-norm.js";
export type { Indexing } from "./indexing.js";
export {
  type AccumulableKernel,
  type DefinedKernel,
  defineKernel,
  type EpilogueKernel,
  linearMain,
  linearWorkgroups,
  type TwinnableKernel,
} from "./kernel.js";
export {
  type CrossEntropyAttributes,
  softmaxCrossEntropy,
  softmaxCrossEntropyBackward,
} from "./losses/cross-entropy.js";
export { labelCounts } from "./losses/label-counts.js";
export { labelWeights, type NllAttributes, nllLoss, nllLossBackward } from "./losses/nll.js";
export { kernelTable } from "./matmul/block-table.js";
export { type FactorRows, factorRows, withFactorRows } from "./matmul/factor-rows.js";
export { type MatmulAttributes, type MatmulOperands, matmul } from "./matmul.js";
export { normBackward } from "./norms/backward.js";
export { norm } from "./norms/norm.js";
export type { NormShape, NormStatistics } from "./norms/shape.js";
export { gradientFlag } from "./observers/gradient-flag.js";
export { canObserveStores, observingStores } from "./observers/observing-stores.js";
export type { StoreObserver } from "./observers/store-observer.js";
export {
  type StoredRange,
  storedRange,
  storedRangeIn,
  storedRangeWords,
} from "./observers/stored-range.js";
export {
  averageControl,
  averageControlLength,
  averageParameters,
  copyBits,
  exactParameters,
  type KeptParameters,
} from "./optimizers/average.js";
export * from "./optimizers/index.js";
export { avgPool2d, avgPool2dBackward } from "./pool/avg-pool.js";
export { maxPool2d, maxPool2dBackward } from "./pool/max-pool.js";
export { type PoolAttributes, poolOutputSize } from "./pool/shape.js";
export { bernoulli, dropout, normal, uniform } from "./random.js";
export type { RandomSource } from "./random-bits.js";
export { argmax } from "./reductions/argmax.js";
export { type ReduceAttributes, type ReduceOp, reduce } from "./reductions/reduce.js";
export { type ScanAttributes, type ScanOp, scan } from "./reductions/scan.js";
export { type TopKAttributes, topK } from "./reductions/top-k.js";
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
export {
  logSoftmax,
  logSoftmaxBackward,
  type RowsAttributes,
  type SoftmaxBackwardOperands,
  softmax,
  softmaxBackward,
} from "./softmax.js";
export { canStoreTwice, storingTwice } from "./twin.js";
export { wovenName } from "./woven-names.js";
