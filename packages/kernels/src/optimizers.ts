// Update rules and the other kernels of optimizers over flat buffers.

export {
  countLostUpdates,
  type DerivedKind,
  errorUnit,
  lostUpdateCounts,
  lostUpdateWords,
  storeParameters,
} from "./diagnostics/lost-updates.js";
export { packHalves, packHeaderWords, packScratchWords, unpackHalves } from "./exchange/pack.js";
export { averageSums } from "./gradients/average-sums.js";
export { clampGradients, clipGradients } from "./gradients/clip-gradients.js";
export { gradientNorm, gradientNormScratchBytes } from "./gradients/gradient-norm.js";
export { adadeltaRule } from "./optimizers/adadelta.js";
export { adafactorRule } from "./optimizers/adafactor.js";
export { adagradRule } from "./optimizers/adagrad.js";
export { adamRule } from "./optimizers/adam.js";
export { adamaxRule } from "./optimizers/adamax.js";
export { asgdRule } from "./optimizers/asgd.js";
export {
  averageControl,
  averageControlLength,
  averageParameters,
  copyBits,
  exactParameters,
  type KeptParameters,
} from "./optimizers/average.js";
export { bertAdamRule } from "./optimizers/bert-adam.js";
export { blockWords } from "./optimizers/blockwise.js";
export { clipPartials, partialsEach } from "./optimizers/clip-partials.js";
export {
  type FactoredBuffers,
  type FactoredLayout,
  factoredLayout,
  factoredMoments,
} from "./optimizers/factored-moments.js";
export { lambRule } from "./optimizers/lamb.js";
export { type LarcScalars, larcRule } from "./optimizers/larc.js";
export {
  launchUpdate,
  type SegmentBuffers,
  type UpdateAttributes,
  type UpdateOperands,
  type UpdateRange,
  type UpdateTarget,
} from "./optimizers/launch-update.js";
export { lionRule } from "./optimizers/lion.js";
export { muonRule } from "./optimizers/muon.js";
export { nadamRule } from "./optimizers/nadam.js";
export { type NewtonSchulzScratch, newtonSchulz } from "./optimizers/newton-schulz.js";
export { novogradRule } from "./optimizers/novograd.js";
export type { ParameterKind, StorageBuffers } from "./optimizers/parameter-storage.js";
export { radamRule } from "./optimizers/radam.js";
export { rmspropRule } from "./optimizers/rmsprop.js";
export { rpropRule } from "./optimizers/rprop.js";
export {
  type Numbers,
  type PassInputs,
  type RuleFamily,
  ruleFamily,
  type SegmentTotals,
  type StateKind,
  type Terms,
  type UpdatePass,
  type UpdateRule,
  updateRule,
} from "./optimizers/rule.js";
export { gatherTotals } from "./optimizers/segment-gather.js";
export { type SegmentPlace, type SegmentTable, segmentTable } from "./optimizers/segment-table.js";
export { sgdRule } from "./optimizers/sgd.js";
export { type ClipOfStep, controlLength, stepControl } from "./optimizers/step-control.js";
