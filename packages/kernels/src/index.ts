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
export { batchNormBackward, batchNormInputGradient } from "./batch-norm/backward.js";
export {
  type BatchNormGradientAttributes,
  batchNormGradientSums,
} from "./batch-norm/gradient-sums.js";
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
export { accumulate, assignUnless } from "./copies/assign.js";
export { type ConcatenateAttributes, concatenate, maxConcatenated } from "./copies/concatenate.js";
export { fill } from "./copies/fill.js";
export { type FoldAttributes, fold } from "./copies/fold.js";
export { type PermuteAttributes, permute } from "./copies/permute.js";
export {
  type CopiedDimension,
  type StridedCopyAttributes,
  stridedCopy,
} from "./copies/strided-copy.js";
export { type CpuBuffer, type CpuTarget, type CpuTargetOptions, cpuTarget } from "./cpu.js";
export { CpuMemoryError } from "./cpu-memory-error.js";
export { type CrfLossOperands, crfLoss } from "./crf/loss.js";
export { type CrfLossBackwardOperands, crfLossBackward } from "./crf/loss-backward.js";
export { type CrfOperands, type CrfShape, maxCrfTags } from "./crf/shape.js";
export { type CrfDecodeOperands, crfDecode } from "./crf/viterbi.js";
export type { KernelDefinition } from "./definition.js";
export type { Domain } from "./domain.js";
export { type Expression, elementwise, type ShapedBinding } from "./elementwise.js";
export { type EngineReport, engineReport } from "./engine-report.js";
export * from "./expressions.js";
export { type FormulaOptions, formula } from "./formula/formula.js";
export { Condition, constant, leaf, Part, predicate, select, Term } from "./formula/term.js";
export { type AddRowsAttributes, addRows, putRows } from "./gather-scatter/add-rows.js";
export { type GatherAttributes, gather } from "./gather-scatter/gather.js";
export { type ScatterAttributes, scatter } from "./gather-scatter/scatter.js";
export { type DefinedKernel, defineKernel, linearMain, linearWorkgroups } from "./kernel.js";
export {
  type CrossEntropyAttributes,
  softmaxCrossEntropy,
  softmaxCrossEntropyBackward,
} from "./losses/cross-entropy.js";
export {
  type CtcOperands,
  type CtcShape,
  ctcBetas,
  ctcGradient,
  ctcLoss,
} from "./losses/ctc.js";
export { labelCounts } from "./losses/label-counts.js";
export { labelWeights, type NllAttributes, nllLoss, nllLossBackward } from "./losses/nll.js";
export { type MatmulWithRowSumsOperands, matmulWithRowSums } from "./matmul/with-row-sums.js";
export { type MatmulAttributes, type MatmulOperands, matmul } from "./matmul.js";
export { normBackward } from "./norms/backward.js";
export { norm } from "./norms/norm.js";
export type { NormShape, NormStatistics } from "./norms/shape.js";
export { avgPool2d, avgPool2dBackward } from "./pool/avg-pool.js";
export { maxPool2d, maxPool2dBackward, maxPool2dSelect } from "./pool/max-pool.js";
export { type PoolAttributes, poolOutputSize } from "./pool/shape.js";
export { bernoulli, dropout, normal, uniform } from "./random.js";
export type { RandomSource } from "./random-bits.js";
export { type IntegerRange, randomIntegers } from "./random-integers.js";
export {
  type GruCellBackwardOperands,
  type GruCellOperands,
  gruCell,
  gruCellBackward,
} from "./recurrent/gru.js";
export {
  type LstmCellBackwardOperands,
  type LstmCellOperands,
  lstmCell,
  lstmCellBackward,
} from "./recurrent/lstm.js";
export type { RecurrentStep } from "./recurrent/step.js";
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
