export { OnnxError, type OnnxProblem } from "./errors.js";
export type { ExternalSink } from "./export/external-writer.js";
export type { OnnxOptions } from "./export/onnx-options.js";
export { toOnnx } from "./export/to-onnx.js";
export type { OnnxValue } from "./import/call.js";
export { describeAudit } from "./import/describe-audit.js";
export type { ByteSource, ExternalFiles } from "./import/external-data.js";
export { type FromOnnxOptions, fromOnnx } from "./import/from-onnx.js";
export {
  type AuditedNode,
  auditHalf,
  type HalfAudit,
  type HalfAuditOptions,
  type ResultErrors,
} from "./import/half-audit.js";
export type { HostTensor } from "./import/host-tensor.js";
export { OnnxModel, OnnxNode } from "./import/onnx-model.js";
export type { GraphInput } from "./import/read-graph.js";
