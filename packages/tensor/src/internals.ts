// For tests and tools that leave passes out of plans, and the types of what the entry `.` hands through.

export type { GradientMark, ScaleMark } from "./autograd/scale-marks.js";
export type { LaunchedOp, LaunchNote } from "./plan/launch-notes.js";
export { allPasses, type PassName } from "./plan/pipeline.js";
