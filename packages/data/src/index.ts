export {
  type BatchOptions,
  batches,
  permutation,
  type SamplerState,
  ShuffledBatches,
  type ShuffleOptions,
  shuffledBatches,
} from "./batches.js";
export { DataError } from "./error.js";
export { type IdxArray, readIdx } from "./idx.js";
export {
  gatherImages,
  gatherLabels,
  type ImageSet,
  imageSet,
  mnistNormalization,
  type Normalization,
} from "./images.js";
export { readJsonLines, readTsv } from "./lines.js";
