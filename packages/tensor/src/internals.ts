// Exports for tests and tools that leave passes out of plans, and types that declarations of the entry `.` refer to.

export type { LaunchedOp, LaunchNote } from "./plan/launch-notes.js";
export { allPasses, type PassName } from "./plan/pipeline.js";
