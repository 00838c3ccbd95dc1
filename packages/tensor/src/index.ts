export { ampPrimitives, type TensorAmpPrimitives } from "./amp.js";
export { type BackwardOptions, grad } from "./autograd.js";
export { castTo } from "./cast.js";
export { castAll } from "./cast-all.js";
export { checkpoint } from "./checkpoint.js";
export { type Composite, type CompositeDefinition, composite } from "./composite.js";
export {
  ArgumentError,
  ClosedTensorError,
  NoSecondDerivativeError,
  RecordingError,
  ShapeError,
} from "./errors.js";
export { type FlatVariables, flatten, flattenByDType } from "./flatten.js";
export {
  type CustomForwardOptions,
  customBackward,
  customForward,
  defineFunction,
  type FunctionContext,
  type FunctionDefinition,
} from "./function.js";
export { Generator } from "./generator.js";
export { isGradEnabled, noGrad } from "./grad-mode.js";
export * as kinds from "./kinds.js";
export {
  type BackwardContext,
  type BinaryOp,
  type CallableOp,
  callable,
  defineOp,
  type ForwardContext,
  type Op,
  type OpDefinition,
  type Operand,
  type TensorSpec,
  type UnaryOp,
} from "./op.js";
export type { OpSite } from "./op-sites.js";
export * from "./ops/index.js";
export { type DumpOptions, dumpPlan } from "./plan/dump.js";
export type { LaunchedOp, LaunchNote } from "./plan/launch-notes.js";
export {
  allPasses,
  type PassName,
  type Plan,
  type PlanBuffer,
  type PlannedLaunch,
  type PlannedValue,
  type PlanStatistics,
} from "./plan/plan.js";
export type { NonFiniteOrigin, ProvenanceMode } from "./provenance.js";
export type { RecorderTarget } from "./recorder-target.js";
export { cpuRuntime, gpuRuntime, type Runtime } from "./runtime.js";
export type {
  RuntimeOptions,
  StepOptions,
  TensorOptions,
  VariableOptions,
} from "./runtime-options.js";
export type { GradientMark, ScaleMark } from "./scale-marks.js";
export { withScope } from "./scope.js";
export type { HostData, Storage } from "./storage.js";
export { type AssignOptions, Tensor, Variable } from "./tensor.js";
export { type OpTrace, traceOps } from "./trace.js";
export type { UnderflowMode, UnderflowOrigin, UnderflowSite } from "./underflow.js";
