export { decodeArray, encodeArray, roundArray } from "./arrays.js";
export { bfloat16 } from "./bfloat16.js";
export { float16 } from "./float16.js";
export type {
  EncodeOptions,
  FloatFormat,
  FormatDefinition,
  FormatInfo,
  FormatName,
  Rounding,
} from "./format.js";
export { formatOf } from "./format-of.js";
export { pack2, unpack2 } from "./pack.js";
