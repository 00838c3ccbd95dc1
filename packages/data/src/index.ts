export {
  type BatchOptions,
  batches,
  permutation,
  type SamplerState,
  ShuffledBatches,
  type ShuffleOptions,
  shuffledBatches,
} from "./batches.js";
export { type NamedBytes, readCifar10 } from "./cifar.js";
export { DataError } from "./error.js";
export { type IdxArray, readIdx } from "./idx.js";
export {
  gatherImages,
  gatherLabels,
  type ImageSet,
  imagenetNormalization,
  imageSet,
  mnistNormalization,
  type Normalization,
  normalizationOf,
  normalizedBytes,
} from "./images.js";
export { readJsonLines, readTsv } from "./lines.js";
export { type PrefetchOptions, prefetch } from "./prefetch.js";
export { stratifiedSample } from "./stratified-sample.js";
