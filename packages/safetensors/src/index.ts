export { dtypeNames, type SafetensorsData, type SafetensorsDtype } from "./dtype.js";
export {
  SafetensorsError,
  type SafetensorsLocation,
  type SafetensorsProblem,
} from "./error.js";
export type { ReadOptions } from "./header.js";
export type { Named } from "./layout.js";
export { openSafetensorsBlob, type SafetensorsFile } from "./open.js";
export { readSafetensors, type Safetensors } from "./read.js";
export type { SafetensorsInfo, SafetensorsTensor } from "./tensor.js";
export {
  type ByteSink,
  type DeferredTensor,
  type WriteOptions,
  writeSafetensors,
  writeSafetensorsTo,
} from "./write.js";
