import { type ArgumentCheck, argumentCheck } from "../arguments/arguments.js";
import { isTensor } from "../arguments/is-tensor.js";
import * as kinds from "../arguments/kinds.js";
import { anything, callback } from "../arguments/own-kinds.js";
import { allPasses } from "../plan/pipeline.js";

// The checks of what a runtime is given. Functions of ops have their own.

const isSize = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;

const shape: kinds.Kind = {
  what: "a shape: a list of whole numbers from 0 on",
  accepts: (value) => Array.isArray(value) && value.every(isSize),
};
/** Numbers of the host, and dtypes, have checks of their own, which say more. */
const data: kinds.Kind = {
  what: "numbers: a typed array or a list",
  accepts: (value) =>
    typeof value === "object" && value !== null && "length" in value && !isTensor(value),
};
const { flag, number, object, oneOf, optional, optionals, text } = kinds;
const tensorOptions = optionals({ dtype: anything, requiresGrad: flag });
const variableOptions = optionals({ dtype: anything, requiresGrad: flag, name: text });

export const checkTensor: ArgumentCheck = argumentCheck("runtime.tensor", {
  data: kinds.either(number, data),
  shape: optional(shape),
  options: tensorOptions,
});
export const checkZeros: ArgumentCheck = argumentCheck("runtime.zeros", {
  shape,
  options: tensorOptions,
});
export const checkFull: ArgumentCheck = argumentCheck("runtime.full", {
  shape,
  value: number,
  options: tensorOptions,
});
export const checkFromBuffer: ArgumentCheck = argumentCheck("runtime.fromBuffer", {
  buffer: kinds.object("a GPUBuffer", "size", "usage"),
  shape,
  dtype: kinds.dtype,
});
export const checkVariable: ArgumentCheck = argumentCheck("runtime.variable", {
  data,
  shape,
  options: variableOptions,
});
export const checkStep: ArgumentCheck = argumentCheck("runtime.step", {
  fn: callback,
  options: optionals({
    onCompile: callback,
    signal: object("an AbortSignal", "aborted"),
    keepGraph: flag,
  }),
});
/** Modes and goals have checks of their own, which say more. */
const runtimeOptions = {
  passes: { what: `a list of passes: ${allPasses.join(", ")}`, accepts: isListOfPasses },
  optimizeFor: anything,
  provenance: anything,
  underflow: anything,
  noteOps: flag,
};

export const checkDevice: ArgumentCheck = argumentCheck("gpuRuntime", {
  device: object("a device: await requestDevice() for one", "capabilities"),
  options: optionals({ ...runtimeOptions, maxInFlight: number, rates: object("rates") }),
});
export const checkCpuRuntime: ArgumentCheck = argumentCheck("cpuRuntime", {
  options: optionals({
    ...runtimeOptions,
    arithmetic: oneOf("float32", "float64"),
    memoryBudget: kinds.positive,
  }),
});

function isListOfPasses(value: unknown): boolean {
  return Array.isArray(value) && value.every((name) => allPasses.includes(name));
}
