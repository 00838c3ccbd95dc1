export { adamRule } from "./adam.js";
export { blockWords } from "./blockwise.js";
export { clipPartials, partialsEach } from "./clip-partials.js";
export {
  launchUpdate,
  type SegmentBuffers,
  type UpdateAttributes,
  type UpdateOperands,
  type UpdateRange,
} from "./launch-update.js";
export type { ParameterKind } from "./parameter-storage.js";
export type { SegmentTotals, StateKind, UpdatePass, UpdateRule } from "./rule.js";
export { type RuleFamily, ruleFamily, updateRule } from "./rule.js";
export { type SegmentPlace, type SegmentTable, segmentTable } from "./segment-table.js";
export { sgdRule } from "./sgd.js";
export { type ClipOfStep, controlLength, stepControl } from "./step-control.js";
