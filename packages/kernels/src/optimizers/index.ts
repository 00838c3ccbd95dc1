export { adadeltaRule } from "./adadelta.js";
export { adafactorRule } from "./adafactor.js";
export { adagradRule } from "./adagrad.js";
export { adamRule } from "./adam.js";
export { adamaxRule } from "./adamax.js";
export { bertAdamRule } from "./bert-adam.js";
export { blockWords } from "./blockwise.js";
export { clipPartials, partialsEach } from "./clip-partials.js";
export { copyValues, isCopyOfValues, withCopy } from "./copy-values.js";
export {
  type FactoredBuffers,
  type FactoredLayout,
  factoredLayout,
  factoredMoments,
} from "./factored-moments.js";
export { lambRule } from "./lamb.js";
export { type LarcScalars, larcRule } from "./larc.js";
export {
  launchUpdate,
  type SegmentBuffers,
  type UpdateAttributes,
  type UpdateOperands,
  type UpdateRange,
  type UpdateTarget,
} from "./launch-update.js";
export { lionRule } from "./lion.js";
export { muonRule } from "./muon.js";
export { nadamRule } from "./nadam.js";
export { type NewtonSchulzScratch, newtonSchulz } from "./newton-schulz.js";
export { novogradRule } from "./novograd.js";
export type { ParameterKind, StorageBuffers } from "./parameter-storage.js";
export { radamRule } from "./radam.js";
export { rmspropRule } from "./rmsprop.js";
export {
  type Numbers,
  type RuleFamily,
  ruleFamily,
  type SegmentTerm,
  type SegmentTotals,
  type StateKind,
  type UpdatePass,
  type UpdateRule,
  updateRule,
} from "./rule.js";
export { type SegmentPlace, type SegmentTable, segmentTable } from "./segment-table.js";
export { sgdRule } from "./sgd.js";
export { type ClipOfStep, controlLength, stepControl } from "./step-control.js";
export { type CopyingKernel, canCopy } from "./weave.js";
