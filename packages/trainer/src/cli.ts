export { chosenPrecision } from "./cli/chosen-precision.js";
export {
  type ClassFlags,
  type CountedClasses,
  classFlags,
  classWeightsOf,
} from "./cli/class-flags.js";
export { command } from "./cli/command.js";
export { dumpFirstPlan } from "./cli/dump-first-plan.js";
export { type EventsHook, eventsOf, removeEvents } from "./cli/events.js";
export {
  type FollowOptions,
  type FollowTraining,
  followTraining,
} from "./cli/follow-training.js";
export type { Job } from "./cli/job.js";
export { type LoraLayers, loraFlags, peftFlag, requireLoraBase } from "./cli/lora-flags.js";
export { type OnnxFlag, onnxFile, onnxFlag } from "./cli/onnx-flag.js";
export {
  type OpenRunOptions,
  openRun,
  type Run,
  type RunProgress,
  type RunResults,
} from "./cli/open-run.js";
export {
  type OpenedRuntime,
  type OpenRuntimeOptions,
  openRuntime,
} from "./cli/open-runtime.js";
export {
  type PretrainedFlags,
  pretrainedFlags,
  readPretrained,
} from "./cli/pretrained-flags.js";
export { exitCodeOf, exitCodes, type ProgramOptions, program, UsageError } from "./cli/program.js";
export { reportOutcome } from "./cli/report-outcome.js";
export {
  flagsOf,
  type ResumeOptions,
  requireSettings,
  resumePoint,
  savedSetting,
  savedSettings,
  settingsOf,
} from "./cli/resume.js";
export {
  type FlagDetails,
  jobDefaults,
  type RunFlags,
  runFlags,
  trackerDefaults,
} from "./cli/run-flags.js";
export { print, say } from "./cli/say.js";
export {
  openTrackers,
  type TrackedTraining,
  type Trackers,
  track,
} from "./cli/trackers.js";
export { noteUnusedScale } from "./cli/unused-scale.js";
export {
  encodingName,
  fraction,
  listOf,
  lossScale,
  notNegative,
  oneOf,
  positiveNumber,
  precisionName,
  wholeNumber,
} from "./cli/values.js";
export type { Settings } from "./summary.js";
