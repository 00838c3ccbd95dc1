// Exports for a planner, which recognises, merges, extends and moves launches. Users of kernels do not need them.

export { accumulating, canAccumulate, storesOnce } from "./accumulating.js";
export { isFiniteCheck } from "./amp/check-finite.js";
export { controlAndScale } from "./amp/control-and-scale.js";
export { isPlainScaleUpdate } from "./amp/update-scale.js";
export {
  type HeadLayout,
  type HeadPlace,
  type Heads,
  headsOf,
  withHeadCount,
  withHeads,
} from "./attention/heads.js";
export { isAccumulation } from "./copies/assign.js";
export { concatenatedStarts, concatenatedWalks } from "./copies/concatenate.js";
export { copyRowsApart } from "./copies/copy-rows-apart.js";
export { copyWords } from "./copies/copy-words.js";
export { contiguousStart, copiedWalk } from "./copies/strided-copy.js";
export {
  inverseWalk,
  rangesThrough,
  turnsOf,
  type Walk,
  type WalkedDimension,
  type WalkedRange,
} from "./copies/walk.js";
export {
  type ElementwiseKernel,
  type ElementwiseProgram,
  type ElementwiseStep,
  isElementwise,
} from "./elementwise.js";
export { type EpilogueOptions, epilogueFits, takesEpilogue, withEpilogue } from "./epilogue.js";
export {
  type ElementwiseLaunch,
  type FusedElementwise,
  fuseElementwiseLaunches,
} from "./fused-elementwise.js";
export { type RowSum, rowSumOf, segmentedIndex } from "./gather-scatter/add-rows.js";
export { isGather } from "./gather-scatter/gather.js";
export type { Indexing } from "./indexing.js";
export type { AccumulableKernel, EpilogueKernel, TwinnableKernel } from "./kernel.js";
export { kernelTable } from "./matmul/block-table.js";
export { type FactorRows, factorRows, withFactorRows } from "./matmul/factor-rows.js";
export { gradientFlag } from "./observers/gradient-flag.js";
export { canObserveStores, observingStores } from "./observers/observing-stores.js";
export type { StoreObserver } from "./observers/store-observer.js";
export {
  type StoredRange,
  storedRange,
  storedRangeIn,
  storedRangeWords,
} from "./observers/stored-range.js";
export { copyValues, isCopyOfValues, withCopy } from "./optimizers/copy-values.js";
export { type CopyingKernel, canCopy } from "./optimizers/weave.js";
export { canStoreTwice, storingTwice } from "./twin.js";
export type { Epilogue } from "./woven-definition.js";
export { wovenName } from "./woven-names.js";
