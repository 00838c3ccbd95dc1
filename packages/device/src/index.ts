// A binding has a dtype.
export type { DType, Float8DType, HalfDType } from "@halfstep/formats/dtypes";

export { type BrowserDeviceOptions, requestDevice } from "./browser.js";
export { type AllocateOptions, type MemoryAccount, sizeClass } from "./buffer-pool.js";
export type { AdapterDescription, Capabilities, Tier } from "./capabilities.js";
export { checkLaunch, checkSharing } from "./check-launch.js";
export type { Counters, CounterValues } from "./counters.js";
export {
  type Device,
  type WaitKind,
  type WaitOptions,
  type WrapOptions,
  wrapDevice,
} from "./device.js";
export type { CompilerDevices } from "./driver-compiler.js";
export type { DeviceEncoder } from "./encoder.js";
export {
  DeviceLostError,
  GpuError,
  LeftOutError,
  MemoryBudgetError,
  NoAdapterError,
  ShaderError,
} from "./errors.js";
export type { Hardware, SubgroupMatrix } from "./hardware.js";
export type {
  Access,
  Binding,
  Kernel,
  KernelBinding,
  KernelScalar,
  KernelView,
  Launch,
  LaunchTarget,
  Program,
  ProgramContext,
  Workgroups,
} from "./launch.js";
export { paced } from "./paced.js";
export type { CompiledKernel, CompileProgress, PrewarmOptions } from "./pipeline-cache.js";
export type { PreparedPass } from "./prepared.js";
export type { DeviceOptions } from "./request.js";
export type { Staging } from "./staging.js";
export { SubmissionQueue } from "./submission-queue.js";
export type { Timed } from "./timing.js";
