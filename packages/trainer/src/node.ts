export {
  describeProgress,
  type Progress,
  type ProgressOptions,
  type ProgressStream,
  type TrainingProgress,
  trainingProgress,
} from "./progress.js";
export { resultsTable } from "./results-table.js";
export { RunFolder } from "./run-folder.js";
