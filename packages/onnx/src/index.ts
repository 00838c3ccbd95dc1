export { OnnxError, type OnnxProblem } from "./errors.js";
export { type OnnxOptions, toOnnx } from "./export/to-onnx.js";
