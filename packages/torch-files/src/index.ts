export {
  type Converted,
  type ConvertOptions,
  type ConvertProgress,
  convertToSafetensors,
} from "./convert.js";
export { TorchFileError, type TorchFileLocation, type TorchFileProblem } from "./error.js";
export { type FileKind, fileKindOf, kindPrefixBytes, wrongKind } from "./file-kind.js";
export {
  openTorch,
  readTorch,
  type TorchFile,
  type TorchInfo,
  type TorchReadOptions,
} from "./open.js";
export { openWeights, type WeightsFile, type WeightsOptions } from "./open-weights.js";
