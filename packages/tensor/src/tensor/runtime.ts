import type { Device, DType, KernelView } from "@halfstep/device";
import { isFloating } from "@halfstep/formats/dtypes";
import { tensorsIn } from "../arguments/tensors-in.js";
import { keepGraph } from "../autograd/kept-graph.js";
import { requireNoRegion } from "../dispatch/regions.js";
import { requireDifferentiable, requireDType } from "../dtypes.js";
import { RecordingError, ShapeError } from "../errors.js";
import { type GraphPasses, passesFor } from "../plan/pipeline.js";
import type { Plan } from "../plan/plan.js";
import type { NonFiniteOrigin } from "../record/provenance.js";
import { Recorder } from "../record/recorder.js";
import type { Recording } from "../record/recording.js";
import { ResidentMemory } from "../record/resident-memory.js";
import { dtypeOf, type HostData, maskOf, type Placement } from "../record/storage.js";
import { type AtOnce, requireSynchronous } from "../record/synchronous.js";
import type { UnderflowSite } from "../record/underflow.js";
import { cpuRunner } from "../run/cpu-runner.js";
import { Executor } from "../run/executor.js";
import { gpuRunner } from "../run/gpu-runner.js";
import { macrotask } from "../run/macrotask.js";
import type { PrepareOptions, Runner } from "../run/runner.js";
import { Wait } from "../run/wait.js";
import { sizeOf } from "../shapes.js";
import type { FurtherRuntime } from "./further-runtime.js";
import { type RecorderTarget, recorderTarget } from "./recorder-target.js";
import {
  checkCpuRuntime,
  checkDevice,
  checkFromBuffer,
  checkFull,
  checkStep,
  checkTensor,
  checkVariable,
  checkZeros,
} from "./runtime-checks.js";
import type {
  CpuRuntimeOptions,
  GpuRuntimeOptions,
  RuntimeOptions,
  StepOptions,
  TensorOptions,
  VariableOptions,
} from "./runtime-options.js";
import { Tensor, unnamed, Variable } from "./tensor.js";

/** A runtime that computes on a GPU. */
export function gpuRuntime(device: Device, options: GpuRuntimeOptions = {}): Runtime {
  checkDevice([device, options]);
  return new Runtime(gpuRunner(device, options), options);
}

/** A runtime that computes on the CPU: exact, slow, with the same results as a GPU up to the order of additions. */
export function cpuRuntime(options: CpuRuntimeOptions = {}): Runtime {
  checkCpuRuntime([options]);
  return new Runtime(cpuRunner(options), options);
}

/** A runtime that computes on a custom runner: one that wraps `gpuRunner()` or `cpuRunner()`, or another device. */
export const runtime = (runner: Runner, options: RuntimeOptions = {}): Runtime =>
  new Runtime(runner, options);

/**
 * Releases the memory of runtimes that were collected as garbage, for reuse by others on the device. The functions must not refer to their
 * runtimes.
 */
const collected = new FinalizationRegistry<() => void>((release) => release());

/** Makes tensors, and records, plans and runs steps. */
// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: with-methods.ts adds what the interface below declares.
export class Runtime {
  /** Takes launches from outside the op set: optimizers, scalers, custom kernels. */
  readonly target: RecorderTarget;
  /** @internal Where ops and backward passes record. */
  readonly recorder: Recorder<Tensor>;
  readonly #runner: Runner;
  readonly #executor: Executor;
  readonly #memory: ResidentMemory;
  readonly #release: () => void;
  #isRunning = false;
  /** Those of the step that is being recorded. */
  #stepOptions: StepOptions | undefined;
  readonly #afterStep: (() => void)[] = [];
  #one: Tensor | undefined;

  /** @internal Use gpuRuntime(), cpuRuntime() or runtime(). */
  constructor(
    runner: Runner,
    {
      optimizeFor,
      passes = passesFor(optimizeFor),
      provenance = "off",
      underflow = "off",
      noteOps = false,
    }: RuntimeOptions,
  ) {
    this.#runner = runner;
    const memory = new ResidentMemory(runner);
    const executor = new Executor(runner, memory, passes);
    this.#memory = memory;
    this.#executor = executor;
    this.#release = () => {
      memory.dispose();
      executor.forget();
    };
    collected.register(this, this.#release, this);
    const hooks = {
      make: (place: Placement, shape: readonly number[], dtype: DType) =>
        new Tensor(this, place, shape, dtype),
      run: (recording: Recording, onEnd: (isLost: boolean) => void) =>
        this.#executor.run(recording, { onCompile: this.#stepOptions?.onCompile, onEnd }),
    };
    const { hardwareClass } = runner;
    const options = { noteOps, hardwareClass };
    const recorder = new Recorder(memory, hooks, options);
    this.recorder = recorder;
    this.target = recorderTarget({
      hardwareClass,
      maxBindingBytes: runner.maxBindingBytes,
      lossScaling: () => (hasFurther(this) ? this.lossScaling() : undefined),
      launch: (launch) => {
        recorder.beforeOp();
        recorder.append(launch);
      },
      updateParameters: (values, update) => recorder.updateParameters(values, update),
      transient: (bytes) => (recorder.isInStep ? recorder.transient(bytes) : undefined),
      resident: (bytes) => this.#memory.allocate(bytes),
      write: (binding, values) => recorder.write(binding, values),
      readsOf: (buffer) => ({
        bindings: recorder.recording.readsOf(buffer),
        copies: buffer.halfCopies?.readIn(recorder.recording) ?? [],
      }),
      afterStep: () =>
        recorder.isInStep ? new Promise((resolve) => this.#afterStep.push(resolve)) : undefined,
      read: (binding, options) => recorder.read(binding, options),
      onDrop: (undo) => recorder.onDrop(undo),
      requireNoStep: (call) => recorder.requireNoStep(call),
    });
    if (provenance !== "off" || underflow !== "off") {
      if (!hasFurther(this))
        throw new RecordingError(
          'the options provenance and underflow need the entry "@halfstep/tensor": import it besides "@halfstep/tensor/functional"',
        );
      recorder.searches = this.searches(
        { provenance, underflow },
        {
          read: (words, options) => this.target.read(words, options),
          drop: ({ found }) => recorder.handles.drop(found.buffer),
        },
      );
    }
  }

  /** Where the runtime computes: "gpu", "cpu", or the kind of a custom runner. */
  get kind(): Runner["kind"] {
    return this.#runner.kind;
  }
  /** Whether its memory consists of `GPUBuffer`s, as `tensor.buffer` returns and `fromBuffer()` takes. */
  get usesGpuBuffers(): boolean {
    return this.#runner.usesGpuBuffers ?? false;
  }
  get label(): string {
    return this.#runner.label;
  }
  /** Tensors that were collected as garbage instead of being disposed. */
  get leakedTensors(): number {
    return this.recorder.handles.leaked;
  }
  /** The plan that ran last: for counters, and for `dumpPlan()`. */
  get lastPlan(): Plan | undefined {
    return this.#executor.lastPlan;
  }
  /** Whether later steps note the ops and modules of each launch: see the option of that name. */
  get noteOps(): boolean {
    return this.recorder.noteOps;
  }
  set noteOps(notes: boolean) {
    this.recorder.noteOps = notes;
  }
  /** @internal */
  get recording(): Recording {
    return this.recorder.recording;
  }
  /**
   * @internal Adds passes to the planner. Functions bring those that transform their launches, before they record them: programs bundle only
   * the passes of what they call.
   */
  bring(passes: GraphPasses): void {
    this.#executor.bring(passes);
  }
  /** Whether `dispose()` was called. */
  get isDisposed(): boolean {
    return this.#memory.isDisposed;
  }
  /** @internal A one, for the start of backward passes. */
  get one(): Tensor {
    this.#one ??= this.#makeResident([1], [], "float32");
    return this.#one;
  }

  /** A tensor of numbers of the host, or a mask. Inside a step it is an input of the step, and lives as long as the step. */
  tensor(
    data: HostData | number | readonly boolean[],
    shape?: readonly number[],
    options: TensorOptions = {},
  ): Tensor {
    checkTensor([data, shape, options]);
    const given = typeof data === "number" ? [data] : data;
    const dims = shape ?? (typeof data === "number" ? [] : [data.length]);
    const isMask = options.dtype === "bool" || typeof given[0] === "boolean";
    const values = isMask ? maskOf(given) : (given as HostData);
    const dtype = options.dtype === "bool" || !options.dtype ? dtypeOf(values) : options.dtype;
    requireDType(dtype);
    requireDifferentiable("tensor", dtype, options);
    if (sizeOf(dims) !== values.length)
      throw new ShapeError(
        `tensor: shape [${dims}] needs ${sizeOf(dims)} elements, the data has ${values.length}`,
      );
    const tensor = this.recorder.isInStep
      ? this.recorder.input(values, dims, dtype)
      : this.#makeResident(values, dims, dtype);
    tensor.requiresGrad = options.requiresGrad ?? false;
    return tensor;
  }

  zeros(shape: readonly number[], options: TensorOptions = {}): Tensor {
    checkZeros([shape, options]);
    return this.tensor(new Float32Array(sizeOf(shape)), shape, options);
  }

  full(shape: readonly number[], value: number, options: TensorOptions = {}): Tensor {
    checkFull([shape, value, options]);
    // Float32 does not hold every integer.
    const { dtype = "float32" } = options;
    if (dtype !== "bool") requireDType(dtype);
    const Numbers = dtype !== "bool" && isFloating(dtype) ? Float32Array : Float64Array;
    return this.tensor(new Numbers(sizeOf(shape)).fill(value), shape, options);
  }

  /** A variable: a tensor that `assign()` changes and that exists until it is disposed. */
  variable(data: HostData, shape: readonly number[], options: VariableOptions = {}): Variable {
    checkVariable([data, shape, options]);
    if (sizeOf(shape) !== data.length)
      throw new ShapeError(
        `variable: shape [${shape}] needs ${sizeOf(shape)} elements, the data has ${data.length}`,
      );
    const dtype = options.dtype ?? dtypeOf(data);
    requireDType(dtype);
    requireDifferentiable("variable", dtype, options);
    const storage = this.#memory.holding(data, dtype);
    const variable = new Variable(
      this,
      { storage, offset: 0 },
      shape,
      dtype,
      options.name ?? unnamed,
    );
    variable.requiresGrad = options.requiresGrad ?? false;
    return this.recorder.handles.track(variable);
  }

  /** @internal A variable in memory that exists already. */
  variableAt(place: Placement, shape: readonly number[], dtype: DType, name: string): Variable {
    return this.recorder.handles.track(new Variable(this, place, shape, dtype, name));
  }

  /**
   * A tensor over memory of the caller's: a GPUBuffer with STORAGE usage for a GPU runtime. It is not copied where the buffer's size, or
   * more of it than the elements, is a multiple of 16 bytes; else each step that uses the tensor first copies it on the device.
   *
   * @throws ArgumentError for what is no GPUBuffer, no shape or no dtype; RecordingError where the runtime has no GPU memory; ShapeError for
   * a buffer that is too small
   */
  fromBuffer(buffer: GPUBuffer, shape: readonly number[], dtype: DType): Tensor {
    checkFromBuffer([buffer, shape, dtype]);
    const storage = this.#memory.foreign(buffer, shape, dtype);
    return this.recorder.handles.track(new Tensor(this, { storage, offset: 0 }, shape, dtype));
  }

  /**
   * Records `fn`, plans what it recorded, and submits it, as soon as its programs are compiled. Resolves to what `fn` returned when it is
   * submitted, without waiting for the device or for functions of host ops; the tensors in it stay alive until the caller disposes them. If
   * `fn` throws, the step is dropped without effect. A failure on the device, or of such a function, rejects this step or a later one, with
   * the number of the last submitted recording as `error.recording`.
   *
   * `fn` is not called at the call but later, once, when earlier steps have left room for this one. Arrays and variables of the program that
   * it reads must stay as they are until the promise resolves: then `fn` has run, and `tensor()` has copied its data.
   *
   * @throws RecordingError while another step of the runtime is open, and inside `noGrad()`, `autocast()`, `traceOps()`, `dryRun()` and
   * `plan()`, which have ended when `fn` is called. Call the first three within `fn`.
   */
  async step<T>(fn: () => T & AtOnce<T>, options: StepOptions = {}): Promise<T> {
    checkStep([fn, options]);
    if (this.#isRunning)
      throw new RecordingError(
        "step() was called while another step of this runtime is open: await each step before the next",
      );
    this.recorder.requireNoStep("step()");
    requireNoRegion("step()");
    options.signal?.throwIfAborted();
    this.#isRunning = true;
    const wait = new Wait(options);
    try {
      await wait.for(this.#noticing(this.#runner.ready()));
      this.#stepOptions = { ...options, onCompile: wait.onCompile };
      const result = this.recorder.step(() => {
        const returned = requireSynchronous<T>("step", fn());
        const results = tensorsIn(returned);
        for (const tensor of results) tensor.keep();
        if (options.keepGraph) keepGraph(results, this);
        return returned;
      });
      await macrotask();
      try {
        await wait.for(this.#noticing(this.#runner.assertWell()));
      } catch (error) {
        for (const tensor of tensorsIn(result)) tensor.dispose();
        throw error;
      }
      return result;
    } finally {
      this.#isRunning = false;
      this.#stepOptions = undefined;
      for (const resolve of this.#afterStep.splice(0)) resolve();
    }
  }

  /**
   * Records `fn` and drops what it recorded: nothing is computed, and no variable changes. Returns the result of `fn`, whose tensors can
   * no longer be used.
   */
  dryRun<T>(fn: () => T & AtOnce<T>): T {
    return this.recorder.rehearse("dryRun", fn);
  }

  /**
   * The plan of a step of `fn`, which is recorded and dropped as by `dryRun()`. Its launches have notes of their ops and modules: print
   * it with `dumpPlan()`.
   */
  plan<T>(fn: () => T & AtOnce<T>): Plan {
    const noting = (): T => {
      this.recording.notes ??= new Map();
      return fn();
    };
    return this.#rehearseStep("plan", noting, (recording) => this.#executor.plan(recording));
  }

  /**
   * Plans and compiles the next step of `fn` without running it: `fn` is recorded and dropped as by `dryRun()`. That step then uses the
   * plan and its programs. Call it between steps only. Rejects where a program does not compile.
   */
  async prepare<T>(fn: () => T & AtOnce<T>, options: PrepareOptions = {}): Promise<void> {
    const compile = this.#rehearseStep("prepare", fn, (recording) =>
      this.#executor.preparation(recording),
    );
    await compile(options);
  }

  /** The first infinite value or NaN of the last searched step, if there was one: see the option `provenance`. Waits for that step. */
  async nonFiniteOrigin(): Promise<NonFiniteOrigin | undefined> {
    return this.recorder.searches?.nonFiniteOrigin();
  }

  /**
   * The effect of the stores of the last counted step on the numbers of each op's results, in program order: see the option `underflow`.
   * Empty where no step was counted. Waits for that step.
   */
  async underflow(): Promise<readonly UnderflowSite[]> {
    return (await this.recorder.searches?.underflow()) ?? [];
  }

  /**
   * Closes the open recording and submits it. Resolves when it is submitted, not when it is done: with host ops, when their functions have
   * ended. Rejects where one has failed.
   */
  async flush(): Promise<void> {
    this.recorder.assertNotInStep("flush()");
    this.recorder.flush();
    await this.#noticing(this.#runner.ready());
    await this.#runner.exchanged?.();
    await this.#noticing(this.#runner.assertWell());
  }

  /**
   * Releases the memory of steps and buffers that are kept for reuse: only variables and kept tensors stay. The next step of every kind
   * is planned and allocated anew. Call it between steps only.
   */
  emptyCache(): void {
    this.recorder.assertNotInStep("emptyCache()");
    this.recorder.flush();
    this.#executor.forget();
    this.#runner.trim?.();
  }

  /**
   * Releases all memory of the runtime: of variables, kept tensors, optimizers, scalers and plans. Afterwards their use is refused. The
   * device is not destroyed. Only between steps.
   */
  dispose(): void {
    if (this.#memory.isDisposed) return;
    this.recorder.assertNotInStep("dispose()");
    this.recorder.abandon();
    collected.unregister(this);
    this.#release();
    this.#runner.trim?.();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  /** @internal */
  async read(tensor: Tensor): Promise<KernelView> {
    tensor.assertUsable();
    if (tensor.requiresGrad && !tensor.storage.isResident) tensor.keep();
    return this.recorder.read(tensor.elements());
  }

  /** Records a step of `fn`, passes the recording to `use`, and drops it. */
  #rehearseStep<R>(caller: string, fn: () => unknown, use: (recording: Recording) => R): R {
    const record = (): void => {
      for (const { storage } of tensorsIn(requireSynchronous(caller, fn())))
        if (!storage.isResident) this.recording.kept.add(storage);
    };
    return this.recorder.rehearseStep(caller, record, use);
  }

  /** Adds to an error of the device the number of the recording after which it was noticed. */
  async #noticing(work: Promise<void>): Promise<void> {
    try {
      await work;
    } catch (error) {
      // A device rejects every await with its first error, which keeps its first number.
      if (error instanceof Error && !("recording" in error))
        Object.assign(error, { recording: this.recording.number - 1 });
      throw error;
    }
  }

  #makeResident(values: HostData, shape: readonly number[], dtype: DType): Tensor {
    const storage = this.#memory.holding(values, dtype);
    return this.recorder.handles.track(new Tensor(this, { storage, offset: 0 }, shape, dtype));
  }
}

/** What the entry `@halfstep/tensor` adds to runtimes. */
export interface Runtime extends FurtherRuntime {}

/** Whether the entry `@halfstep/tensor` is loaded. */
export const hasFurther = (runtime: Partial<FurtherRuntime>): runtime is FurtherRuntime =>
  runtime.searches !== undefined;
