import type { DType } from "@halfstep/device";
import type { OptimizationGoal, PassName } from "../plan/pipeline.js";
import type { ProvenanceMode } from "../record/provenance.js";
import type { UnderflowMode } from "../record/underflow.js";
import type { CpuRunnerOptions } from "../run/cpu-runner.js";
import type { GpuRunnerOptions } from "../run/gpu-runner.js";
import type { PrepareOptions } from "../run/runner.js";

/** Options of `runtime()`, and of `gpuRuntime()` and `cpuRuntime()`. */
export interface RuntimeOptions {
  /** Passes of the planner. Leaving some out changes speed and memory, and no bit of any result. Default: all for `optimizeFor`. */
  readonly passes?: readonly PassName[];
  /**
   * The goal of plans where speed and memory conflict. "speed" keeps sums for the backward pass instead of computing them again.
   * "memory" never copies factors of products to padded rows. Neither changes a bit of any result. Default: a balance, with both kinds
   * of passes. Ignored where `passes` is given.
   */
  readonly optimizeFor?: OptimizationGoal;
  /** The steps that are searched for the origin of infinite values and NaN. Default "off". */
  readonly provenance?: ProvenanceMode;
  /** The steps in which numbers that stores round to zero are counted for each op: see `runtime.underflow()`. Default "off". */
  readonly underflow?: UnderflowMode;
  /** Note the ops and modules of each launch, so that `dumpPlan(runtime.lastPlan)` prints them. Default false. */
  readonly noteOps?: boolean;
}

/** Options of `gpuRuntime()`. */
export type GpuRuntimeOptions = RuntimeOptions & GpuRunnerOptions;

/** Options of `cpuRuntime()`. */
export type CpuRuntimeOptions = RuntimeOptions & CpuRunnerOptions;

/** Options of `runtime.tensor()`. */
export interface TensorOptions {
  /** Default: float32, or the type of a typed array of integers. "bool" makes a mask: a uint32 of 1 where a number is not 0, else 0. */
  readonly dtype?: DType | "bool";
  /** Default false. */
  readonly requiresGrad?: boolean;
}

/** Options of `runtime.variable()`. */
export interface VariableOptions extends Omit<TensorOptions, "dtype"> {
  /** Default: float32, or the type of a typed array of integers. */
  readonly dtype?: DType;
  /** The name in errors and state dicts. Default: "variable"; `flatten()` numbers several of them. */
  readonly name?: string;
}

/** Options of `runtime.step()`. */
export interface StepOptions {
  /** Told how many of the step's programs are compiled. If it throws, the step rejects with its error, as by `signal`. */
  readonly onCompile?: PrepareOptions["onCompile"];
  /**
   * Ends the wait for the programs of a first step: the step rejects with the signal's reason, and its results are disposed. It is
   * recorded already: its effects on variables happen when its programs are compiled, and later steps wait for them. A step whose
   * signal is aborted before it begins is not recorded.
   */
  readonly signal?: AbortSignal | undefined;
  /** Keep the graph, so that `backward()` may be called after the step. Default false. */
  readonly keepGraph?: boolean;
}
