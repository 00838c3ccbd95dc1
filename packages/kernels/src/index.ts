export {
  type Conv2dAttributes,
  conv2d,
  conv2dInputGradient,
  conv2dOutputSize,
  conv2dWeightGradient,
} from "./conv2d.js";
export {
  type CpuBuffer,
  type CpuTarget,
  type CpuTargetOptions,
  cpuTarget,
  runOnCpu,
} from "./cpu.js";
export {
  type ElementwiseKernel,
  type ElementwiseProgram,
  type ElementwiseStep,
  type Expression,
  elementwise,
  elementwiseKernel,
  isElementwise,
  type ShapedBinding,
} from "./elementwise.js";
export { add, identity } from "./expressions.js";
export type { Indexing } from "./indexing.js";
export { defineKernel, type KernelDefinition, linearMain, linearWorkgroups } from "./kernel.js";
export { type MatmulAttributes, type MatmulOperands, matmul } from "./matmul.js";
