export { adaptiveAvgPool1d, adaptiveAvgPool2d } from "./adaptive-pool.js";
export { type Conv3dOptions, conv3d } from "./conv3d.js";
export {
  type ArangeOptions,
  arange,
  type CreationOptions,
  type EyeOptions,
  eye,
  linspace,
  type TriangleOptions,
  tril,
  triu,
} from "./creation.js";
export { nonzero, type Unique, unique } from "./found-places.js";
export { type IndexPart, index } from "./index-by.js";
export {
  bitwiseAnd,
  bitwiseLeftShift,
  bitwiseNot,
  bitwiseOr,
  bitwiseRightShift,
  bitwiseXor,
  floorDivide,
  type IntegerOp,
  remainder,
} from "./integers.js";
export { type CtcOptions, ctcLoss } from "./losses/ctc.js";
export { lerp, outer } from "./mixing.js";
export { instanceNorm, pixelShuffle, pixelUnshuffle } from "./pixels.js";
export { type AvgPool1dOptions, avgPool1d, maxPool1d, type Pool1dOptions } from "./pool.js";
export {
  type DrawOptions,
  type MultinomialOptions,
  multinomial,
  type RandintOptions,
  randint,
  randperm,
} from "./random-choice.js";
export {
  type GruOptions,
  type GruResult,
  gru,
  type LstmOptions,
  type LstmResult,
  lstm,
  type RecurrentWeights,
} from "./recurrent.js";
export { clone, repeat, tile } from "./repetition.js";
export { argsort, type Median, median, type SortOptions, sort } from "./sorting.js";
export { type ScanOptions, type ScanStep, scan, type WithTensors } from "./time-steps.js";
export { fold, type UnfoldOptions, unfold } from "./unfold.js";
