export type { Upcoming } from "./ahead.js";
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
export { type DecodeTextOptions, decodeText } from "./decode-text.js";
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
export {
  csvRows,
  jsonRows,
  type Row,
  type RowOptions,
  readCsv,
  readJsonLines,
  readTsv,
  tsvRows,
} from "./lines.js";
export { type PrefetchOptions, prefetch } from "./prefetch.js";
export { type Share, shareOf } from "./share.js";
export { stratifiedSample } from "./stratified-sample.js";
