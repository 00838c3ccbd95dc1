export { compare, type FormatComparison } from "./analysis/compare.js";
export {
  addHistograms,
  type ExponentHistogram,
  exponentHistogram,
} from "./analysis/histogram.js";
export { type LostUpdates, lostUpdates } from "./analysis/lost-updates.js";
export {
  type ExpectedShares,
  type RecommendScaleOptions,
  recommendScale,
  type ScaleRecommendation,
} from "./analysis/recommend-scale.js";
export {
  decodeArray,
  type EncodeArrayOptions,
  encodeArray,
  type Numbers,
  roundArray,
} from "./arrays.js";
export { bfloat16 } from "./bfloat16.js";
export { BFloat16Array } from "./bfloat16-array.js";
export { getBFloat16, getFloat16, setBFloat16, setFloat16 } from "./data-view.js";
export { f16round } from "./f16round.js";
export { float4e2m1fn } from "./float4e2m1fn.js";
export { float6e2m3fn } from "./float6e2m3fn.js";
export { float6e3m2fn } from "./float6e3m2fn.js";
export { float8e3m4 } from "./float8e3m4.js";
export { float8e4m3 } from "./float8e4m3.js";
export { float8e4m3b11fnuz } from "./float8e4m3b11fnuz.js";
export { float8e4m3fn } from "./float8e4m3fn.js";
export { float8e4m3fnuz } from "./float8e4m3fnuz.js";
export { float8e5m2 } from "./float8e5m2.js";
export { float8e5m2fnuz } from "./float8e5m2fnuz.js";
export { float8e8m0fnu } from "./float8e8m0fnu.js";
export { float16 } from "./float16.js";
export { Float16Array } from "./float16-array.js";
export { float32 } from "./float32.js";
export { float64 } from "./float64.js";
export type {
  CodeArray,
  EncodeOptions,
  FloatFormat,
  FormatDefinition,
  FormatName,
  FormatsByName,
  Rounding,
} from "./format.js";
export { formatOf } from "./format-of.js";
export type { HalfArray, HalfArrayConstructor } from "./half-array.js";
export { pack2, unpack2 } from "./pack.js";
export type { Classification, FormatInfo, RealFormat } from "./real.js";
export {
  joinFloat32Array,
  joinRemainder,
  remainderCode,
  type SplitFloat32,
  splitFloat32Array,
} from "./remainder.js";
export {
  decodeMx,
  encodeMx,
  type MxArray,
  type MxElement,
  type MxOptions,
  type MxRule,
  mxBlockSize,
  mxScale,
} from "./scaled/mx.js";
export {
  decodeNvfp4,
  encodeNvfp4,
  type Nvfp4Array,
  type Nvfp4Options,
  nvfp4BlockSize,
  nvfp4TensorScale,
} from "./scaled/nvfp4.js";
export { packCodes, unpackCodes } from "./scaled/pack-codes.js";
export {
  decodeScaled,
  encodeScaled,
  type ScaledArray,
  type ScaledOptions,
  type ScaleOptions,
  scaleOf,
} from "./scaled/scaled.js";
export { tfloat32 } from "./tfloat32.js";
export { bulkBackend } from "./wasm/kernels.js";
