// Exports for tests and tools that leave passes out of plans or translate traces, and types that declarations of the entry `.` refer to.

export type { FusedAttention } from "./ops/attention.js";
export type { Probabilities } from "./ops/attention-probabilities.js";
export type { NormAttributes } from "./ops/norms.js";
export type { RecurrentLayer } from "./ops/recurrent.js";
export type { Reduction } from "./ops/reduction.js";
export { structuredOps } from "./ops/structured.js";
export type { Resample } from "./ops/upsample.js";
export type { Windows } from "./ops/windows.js";
export type { LaunchedOp, LaunchNote } from "./plan/launch-notes.js";
export { allPasses, type PassName } from "./plan/pipeline.js";
export { hostNumbersOf } from "./tensor/host-numbers.js";
