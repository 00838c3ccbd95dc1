// Everything of the first entry but the further methods of tensors.
export * as kinds from "./arguments/kinds.js";
export { checkpoint } from "./autograd/checkpoint.js";
export { isGradEnabled, noGrad } from "./autograd/grad-mode.js";
export type { BackwardContext } from "./autograd/grad-node.js";
export { type BackwardOptions, backward, grad } from "./backward/backward.js";
export { castTo } from "./dispatch/cast.js";
export { castAll } from "./dispatch/cast-all.js";
export { type Composite, type CompositeDefinition, composite } from "./dispatch/composite.js";
export {
  type CustomForwardOptions,
  customBackward,
  customForward,
  defineFunction,
  type FunctionContext,
  type FunctionDefinition,
} from "./dispatch/function.js";
export {
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
} from "./dispatch/op.js";
export {
  type OpTrace,
  type TracedDefinition,
  type TraceOptions,
  traceOps,
} from "./dispatch/trace.js";
export {
  ArgumentError,
  ClosedTensorError,
  HostOpError,
  NoSecondDerivativeError,
  RecordingError,
  ShapeError,
} from "./errors.js";
export { type BatchPart, Generator } from "./ops/generator.js";
export * from "./ops/index.js";
export { type DumpOptions, dumpPlan } from "./plan/dump.js";
export { defineHostOp, type PlannedHostOp } from "./plan/host-ops.js";
export type { OptimizationGoal } from "./plan/pipeline.js";
export type { Plan, PlanBuffer, PlannedLaunch, PlannedValue, PlanStatistics } from "./plan/plan.js";
export type { CastDecision } from "./record/cast-decision.js";
export {
  type AddedRows,
  type CarriedPart,
  type CarryRows,
  type Divide,
  type Division,
  type HostFunction,
  type HostLaunch,
  type HostOp,
  type HostOpDefinition,
  type HostPart,
  hostLaunch,
  type RowStage,
  type RowsOfPart,
} from "./record/host-op.js";
export type { OpSite } from "./record/op-sites.js";
export type { NonFiniteOrigin, ProvenanceMode } from "./record/provenance.js";
export type { MemoryOwner, ReadOptions } from "./record/resident-memory.js";
export { withScope } from "./record/scope.js";
export type { HostData, Memory, Storage } from "./record/storage.js";
export type { UnderflowMode, UnderflowOrigin, UnderflowSite } from "./record/underflow.js";
export { type CpuRunnerOptions, cpuRunner } from "./run/cpu-runner.js";
export { type GpuRunnerOptions, gpuRunner } from "./run/gpu-runner.js";
export type { Invocation, PlanRun, PrepareOptions, Runner } from "./run/runner.js";
export type { DeviceRates } from "./run/submits.js";
export { ampPrimitives, type TensorAmpPrimitives } from "./tensor/amp.js";
export { type FlatVariables, flatten, flattenByDType } from "./tensor/flatten.js";
export { tensorFormatter } from "./tensor/print.js";
export type { RecorderTarget, StorageReads } from "./tensor/recorder-target.js";
export { cpuRuntime, gpuRuntime, type Runtime, runtime } from "./tensor/runtime.js";
export type {
  CpuRuntimeOptions,
  GpuRuntimeOptions,
  RuntimeOptions,
  StepOptions,
  TensorOptions,
  VariableOptions,
} from "./tensor/runtime-options.js";
export { type AssignOptions, type ElementsOf, Tensor, Variable } from "./tensor/tensor.js";
