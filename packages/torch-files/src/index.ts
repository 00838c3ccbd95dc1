export { TorchFileError, type TorchFileLocation, type TorchFileProblem } from "./error.js";
export { type FileKind, fileKindOf, kindPrefixBytes, wrongKind } from "./file-kind.js";
export {
  openTorch,
  readTorch,
  type TorchFile,
  type TorchInfo,
  type TorchReadOptions,
} from "./open.js";
