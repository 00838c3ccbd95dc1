import {
  type Binding,
  bytesPerElement,
  type Device,
  type DType,
  type HalfDType,
  type KernelView,
  type Launch,
  type LaunchTarget,
} from "@halfstep/device";
import { type CpuTargetOptions, elementwise, identity } from "@halfstep/kernels";
import { ampPrimitives } from "./amp.js";
import { RecordingError, ShapeError } from "./errors.js";
import { halfCopiesOf } from "./half-copies.js";
import { Handles } from "./handles.js";
import { allPasses, type Plan } from "./plan/plan.js";
import {
  insertSearch,
  type NonFiniteOrigin,
  originIn,
  Provenance,
  type Search,
} from "./provenance.js";
import { isRepeatedWrite } from "./recomputation.js";
import { type RecorderTarget, recorderTarget } from "./recorder-target.js";
import { Recording } from "./recording.js";
import { ResidentMemory } from "./resident-memory.js";
import { requireSynchronous, tensorsIn } from "./returned.js";
import { cpuRunner } from "./run/cpu-runner.js";
import { Executor } from "./run/executor.js";
import { gpuRunner } from "./run/gpu-runner.js";
import { macrotask } from "./run/macrotask.js";
import type { ReadOptions, Runner } from "./run/runner.js";
import type {
  RuntimeOptions,
  StepOptions,
  TensorOptions,
  VariableOptions,
} from "./runtime-options.js";
import { dtypeOf, type HostData, Storage, type WriteEvent } from "./storage.js";
import { sizeOf, Tensor, Variable } from "./tensor.js";

/** A recording outside a step closes by itself at this many launches. */
const longestRecording = 10_000;

/** A runtime that computes on a GPU. */
export const gpuRuntime = (device: Device, options: RuntimeOptions = {}): Runtime =>
  new Runtime(gpuRunner(device, options.maxInFlight ?? 2), options);

/** A runtime that computes on the CPU: exact, slow, and the same results as a GPU up to the order of additions. */
export const cpuRuntime = (options: RuntimeOptions & CpuTargetOptions = {}): Runtime =>
  new Runtime(cpuRunner(options), options);

/** Owns one open recording, to which all ops on its tensors append, and runs what closes. */
export class Runtime {
  /** Takes launches from outside the op set: optimizers, scalers, kernels of one's own. */
  readonly target: RecorderTarget;
  /** @internal Where ops put their launches; its memory is scratch of the recording. */
  readonly scratchTarget: LaunchTarget<Storage>;
  readonly #runner: Runner;
  readonly #executor: Executor;
  /** Whether steps from now on note which ops of which modules each launch computes: see the option of that name. */
  noteOps: boolean;
  /** @internal Which steps are searched. */
  readonly provenance: Provenance;
  readonly #handles: Handles;
  readonly #memory: ResidentMemory;
  #recording: Recording;
  #isInStep = false;
  #isRunning = false;
  readonly #afterStep: (() => void)[] = [];
  #clock = 0;
  #recordings = 0;
  #one: Tensor | undefined;

  /** @internal Use gpuRuntime() or cpuRuntime(). */
  constructor(
    runner: Runner,
    { passes = allPasses, provenance = "off", noteOps = false }: RuntimeOptions,
  ) {
    this.#runner = runner;
    this.#memory = new ResidentMemory(runner, this);
    this.noteOps = noteOps;
    this.#executor = new Executor(runner, passes);
    this.#recording = this.#newRecording();
    this.#handles = new Handles((storage) => this.#release(storage));
    this.provenance = new Provenance(provenance, ({ found }) => this.#handles.drop(found.buffer));
    this.scratchTarget = {
      launch: (launch) => this.#append(launch),
      allocate: (bytes) => this.#transient(bytes),
    };
    this.target = recorderTarget({
      lossScaling: () => ampPrimitives(this),
      launch: (launch) => {
        this.beforeOp();
        this.#append(launch);
      },
      transient: (bytes) => (this.#isInStep ? this.#transient(bytes) : undefined),
      resident: (bytes) => this.#memory.allocate(bytes),
      write: (binding, values) => this.#write(binding, values),
      afterStep: () =>
        this.#isInStep ? new Promise((resolve) => this.#afterStep.push(resolve)) : undefined,
      read: (binding, options) => this.#readBinding(binding, options),
      onDrop: (undo) => this.onDrop(undo),
    });
  }

  /** Where the runtime computes. */
  get kind(): "gpu" | "cpu" {
    return this.#runner.kind;
  }
  get label(): string {
    return this.#runner.label;
  }
  /** Tensors that were collected as garbage instead of being disposed. */
  get leakedTensors(): number {
    return this.#handles.leaked;
  }
  /** The plan that ran last: for counters, and for `dumpPlan()`. */
  get lastPlan(): Plan | undefined {
    return this.#executor.lastPlan;
  }
  /** @internal */
  get recording(): Recording {
    return this.#recording;
  }
  /** @internal Grows with every write to resident memory. */
  get clock(): number {
    return this.#clock;
  }
  /** @internal A one, for the start of backward passes. */
  get one(): Tensor {
    this.#one ??= this.#makeResident([1], [], "float32");
    return this.#one;
  }

  /** A tensor of numbers of the host. Inside a step it is an input of the step, and lives as long as the step. */
  tensor(data: HostData | number, shape?: readonly number[], options: TensorOptions = {}): Tensor {
    const values = typeof data === "number" ? [data] : data;
    const dims = shape ?? (typeof data === "number" ? [] : [data.length]);
    const dtype = options.dtype ?? dtypeOf(values);
    if (sizeOf(dims) !== values.length)
      throw new ShapeError(
        `tensor: shape [${dims}] needs ${sizeOf(dims)} elements, the data has ${values.length}`,
      );
    const tensor = this.#isInStep
      ? this.#makeInput(values, dims, dtype)
      : this.#makeResident(values, dims, dtype);
    tensor.requiresGrad = options.requiresGrad ?? false;
    return tensor;
  }

  zeros(shape: readonly number[], options: TensorOptions = {}): Tensor {
    return this.tensor(new Float32Array(sizeOf(shape)), shape, options);
  }

  full(shape: readonly number[], value: number, options: TensorOptions = {}): Tensor {
    return this.tensor(new Float32Array(sizeOf(shape)).fill(value), shape, options);
  }

  /** A variable: what `assign()` changes, and what lives until it is disposed. */
  variable(data: HostData, shape: readonly number[], options: VariableOptions = {}): Variable {
    if (sizeOf(shape) !== data.length)
      throw new ShapeError(
        `variable: shape [${shape}] needs ${sizeOf(shape)} elements, the data has ${data.length}`,
      );
    const dtype = options.dtype ?? dtypeOf(data);
    const storage = this.#memory.holding(data, dtype);
    const variable = new Variable(
      this,
      { storage, offset: 0 },
      shape,
      dtype,
      options.name ?? "variable",
    );
    variable.requiresGrad = options.requiresGrad ?? false;
    return this.track(variable);
  }

  /** @internal A variable in memory that exists already. */
  variableAt(
    place: { readonly storage: Storage; readonly offset: number },
    shape: readonly number[],
    dtype: DType,
    name: string,
  ): Variable {
    return this.track(new Variable(this, place, shape, dtype, name));
  }

  /** A tensor over memory of the caller's, without a copy: a GPUBuffer with STORAGE usage for a GPU runtime. */
  fromBuffer(buffer: GPUBuffer, shape: readonly number[], dtype: DType): Tensor {
    const storage = this.#memory.foreign(buffer, shape, dtype);
    return this.track(new Tensor(this, { storage, offset: 0 }, shape, dtype));
  }

  /**
   * Records `fn`, plans what it recorded, and submits it. Resolves to what `fn` returned, without waiting for the step; the
   * tensors in it stay alive, and are the caller's to dispose. If `fn` throws, nothing has happened. What goes wrong on the
   * device rejects this step or a later one, with the number of the last submitted recording as `error.recording`.
   */
  async step<T>(
    fn: () => T extends PromiseLike<unknown> ? never : T,
    options: StepOptions = {},
  ): Promise<T> {
    if (this.#isRunning)
      throw new RecordingError(
        "step() was called while another step of this runtime is open: await each step before the next",
      );
    this.#isRunning = true;
    try {
      await this.#noticing(this.#runner.ready());
      this.#closeKeeping();
      const result = this.#record(fn as () => T, options);
      this.#close();
      await macrotask();
      await this.#noticing(this.#runner.assertWell());
      return result;
    } finally {
      this.#isRunning = false;
      for (const resolve of this.#afterStep.splice(0)) resolve();
    }
  }

  /**
   * Records `fn` and drops what it recorded: nothing is computed, and no variable changes. Returns what `fn` returned, in
   * which tensors cannot be used any more.
   */
  dryRun<T>(fn: () => T extends PromiseLike<unknown> ? never : T): T {
    return this.#rehearse("dryRun", fn as () => T);
  }

  /**
   * The plan of a step of `fn`, which is recorded and dropped as by `dryRun()`. Its launches say which ops of which modules they
   * compute: print it with `dumpPlan()`.
   */
  plan<T>(fn: () => T extends PromiseLike<unknown> ? never : T): Plan {
    return this.#rehearse("plan", () => {
      const { recording } = this;
      recording.notes ??= new Map();
      for (const tensor of tensorsIn(requireSynchronous("plan", fn())))
        if (!tensor.storage.isResident) recording.kept.add(tensor.storage);
      return this.#executor.plan(recording);
    });
  }

  /**
   * The first value of the last searched step that was infinite or NaN, if there was one: see the option `provenance`. Waits
   * for that step.
   */
  async nonFiniteOrigin(): Promise<NonFiniteOrigin | undefined> {
    const { latest } = this.provenance;
    return latest && this.originIn(latest);
  }

  /** @internal What a search found; undefined also where it is too long ago. */
  async originIn(search: Search, options?: ReadOptions): Promise<NonFiniteOrigin | undefined> {
    if (!this.provenance.has(search)) return undefined;
    return originIn(search, await this.target.read(search.found, options));
  }

  /** Closes the open recording and submits it. Resolves when it is submitted, not when it is done. */
  async flush(): Promise<void> {
    this.#assertNotInStep("flush()");
    this.#closeKeeping();
    await this.#noticing(this.#runner.ready());
  }

  /**
   * Gives back the memory that steps compute in and buffers that are kept for reuse: what is live afterwards are variables and
   * kept tensors. The next step of every kind is planned, and gets memory, anew. Between steps only.
   */
  emptyCache(): void {
    this.#assertNotInStep("emptyCache()");
    this.#closeKeeping();
    this.#executor.forget();
  }

  /** @internal Where an op begins: a long recording outside a step closes between ops, never inside one. */
  beforeOp(): void {
    if (!this.#isInStep && this.#recording.launches.length >= longestRecording)
      this.#closeKeeping();
  }

  /** @internal Result of an op: memory that the planner will find. */
  result(shape: readonly number[], dtype: DType): Tensor {
    const storage = this.#transient(Math.max(1, sizeOf(shape)) * bytesPerElement(dtype));
    const tensor = new Tensor(this, { storage, offset: 0 }, shape, dtype);
    return this.#isInStep ? tensor : this.track(tensor);
  }

  /** @internal The copy that is kept of a float32 tensor in a 16-bit format; undefined where there is none. */
  halfCopyOf(tensor: Tensor, dtype: HalfDType): Tensor | undefined {
    if (!this.#isInStep) return undefined;
    const place = halfCopiesOf(tensor.storage)?.placeOf(tensor.offset, dtype, this.#recording, {
      allocate: (bytes) => this.#memory.allocate(bytes),
      release: (copy) => this.#handles.drop(copy),
    });
    return place && new Tensor(this, place, tensor.shape, dtype);
  }

  /** @internal The same memory in another shape. */
  viewOf(tensor: Tensor, shape: readonly number[]): Tensor {
    tensor.assertUsable();
    const { storage, offset, dtype } = tensor;
    const view = new Tensor(this, { storage, offset }, shape, dtype);
    return this.#isInStep ? view : this.track(view);
  }

  /** @internal The first write after a time of the clock. */
  writeSince({ storage, offset, dtype, size }: Tensor, clock: number): WriteEvent | undefined {
    return storage.firstWriteSince(clock, offset, offset + size * bytesPerElement(dtype));
  }

  /** @internal The tensor as it was at an earlier time of the clock. */
  versionAt(tensor: Tensor, clock: number, forHigherDerivative: boolean): Tensor {
    const { dtype } = tensor;
    const write = this.writeSince(tensor, clock);
    if (!write) return tensor;
    const name = tensor instanceof Variable ? tensor.name : `a tensor of shape [${tensor.shape}]`;
    if (write.recording !== this.#recording || forHigherDerivative)
      throw new RecordingError(
        `backward() needs ${name} at version ${clock}, but it was assigned since and has version ${write.clock}: ` +
          "call backward() before the assignment",
      );
    const copy = this.result(tensor.shape, dtype);
    this.#recording.insert(write.index, elementwise(identity, [tensor.operand()], copy.operand()));
    return copy;
  }

  /** @internal */
  async read(tensor: Tensor): Promise<KernelView> {
    tensor.assertUsable();
    if (tensor.requiresGrad && !tensor.storage.isResident) tensor.keep();
    return this.#readBinding(tensor.operand());
  }

  /** @internal */
  onDrop(undo: () => void): void {
    if (this.#isInStep) this.#recording.onDrop(undo);
  }

  /** @internal Makes a tensor keep its memory, until it is disposed or collected as garbage. */
  track<T extends Tensor>(tensor: T): T {
    return this.#handles.track(tensor);
  }

  /** @internal */
  untrack(tensor: Tensor, storage: Storage): void {
    this.#handles.untrack(tensor, storage);
  }

  /** @internal Gives back what is kept for nothing but a backward pass that has now been. */
  releaseSaved(tensors: readonly Tensor[]): void {
    this.#handles.releaseSaved(tensors, (undo) => this.onDrop(undo));
  }

  /** Calls `fn` as in a step, and drops what it recorded. */
  #rehearse<T>(caller: string, fn: () => T): T {
    this.#assertNotInStep(`${caller}()`);
    this.#closeKeeping();
    this.#isInStep = true;
    try {
      return requireSynchronous(caller, fn());
    } finally {
      this.#abandon();
      this.#isInStep = false;
    }
  }

  #record<T>(fn: () => T, { keepGraph = false }: StepOptions): T {
    this.#isInStep = true;
    this.provenance.begin(this.#recording);
    try {
      const result = requireSynchronous("step", fn());
      const results = [...tensorsIn(result)];
      for (const tensor of results) tensor.keep();
      if (keepGraph) this.#handles.keepGraph(results);
      return result;
    } catch (error) {
      this.#abandon();
      throw error;
    } finally {
      this.#isInStep = false;
    }
  }

  #close(): void {
    const recording = this.#recording;
    if (recording.launches.length > 0 || recording.inputs.length > 0) {
      try {
        const search = insertSearch(recording, (bytes) => this.#transient(bytes));
        this.#executor.run(recording);
        if (search) this.provenance.publish(search, recording);
      } catch (error) {
        this.#abandon();
        throw error;
      }
    }
    for (const storage of recording.inputs) storage.hostData = undefined;
    for (const storage of recording.transients) storage.recording = undefined;
    for (const storage of recording.kept) if (storage.handles === 0) this.#free(storage);
    for (const storage of recording.released) this.#free(storage);
    recording.clear();
    this.#recording = this.#newRecording();
  }

  /** Drops the open recording: nothing of it has happened. */
  #abandon(): void {
    const recording = this.#recording;
    recording.drop();
    for (const storage of recording.released) this.#free(storage);
    recording.clear();
    this.#recording = this.#newRecording();
  }

  /** Marks a failure of the device with the recording after which it was noticed. */
  async #noticing(work: Promise<void>): Promise<void> {
    try {
      await work;
    } catch (error) {
      // A device rejects every await with the error that it met first, and that keeps its first mark.
      if (error instanceof Error && !("recording" in error))
        Object.assign(error, { recording: this.#recordings - 1 });
      throw error;
    }
  }

  #newRecording(): Recording {
    return new Recording(++this.#recordings, () => ++this.#clock, this.noteOps);
  }

  #append(launch: Launch<Storage>): void {
    for (const { buffer } of launch.bindings)
      if (buffer.owner !== this)
        throw new RecordingError(
          `${launch.kernel.name}: its operands belong to different runtimes. Make all tensors with one runtime, or copy the data over.`,
        );
    if (!isRepeatedWrite(launch)) this.#recording.append(launch);
  }

  /** Closes a recording outside a step: every tensor that has a handle stays. */
  #closeKeeping(): void {
    for (const storage of this.#recording.transients)
      if (storage.handles > 0) this.#recording.kept.add(storage);
    this.#close();
  }

  #transient(bytes: number): Storage {
    const storage = new Storage(this, Math.ceil(bytes / 16) * 16);
    storage.recording = this.#recording;
    this.#recording.transients.push(storage);
    return storage;
  }

  #makeInput(values: HostData, shape: readonly number[], dtype: DType): Tensor {
    const tensor = this.result(shape, dtype);
    const { storage } = tensor;
    storage.hostData = values;
    storage.inputBinding = { offset: 0, length: values.length, dtype };
    this.#recording.inputs.push(storage);
    return tensor;
  }

  #makeResident(values: HostData, shape: readonly number[], dtype: DType): Tensor {
    const storage = this.#memory.holding(values, dtype);
    return this.track(new Tensor(this, { storage, offset: 0 }, shape, dtype));
  }

  #write(binding: Binding<Storage>, values: ArrayLike<number>): void {
    if (!this.#isInStep) this.#closeKeeping();
    this.#memory.write(binding, values);
    binding.buffer.halfCopies?.valuesWritten(this.#recording);
  }

  async #readBinding(binding: Binding<Storage>, options?: ReadOptions): Promise<KernelView> {
    this.#assertNotInStep("a read");
    this.#closeKeeping();
    return this.#memory.read(binding, options);
  }

  #assertNotInStep(what: string): void {
    if (this.#isInStep)
      throw new RecordingError(
        `${what} inside a step: nothing is computed before it ends. Return the tensor and read it after the step.`,
      );
  }

  /** The last handle of this memory is gone: it is free once the open recording no longer needs it. */
  #release(storage: Storage): void {
    if (!storage.isResident) return;
    if (this.#recording.launches.length > 0) this.#recording.released.push(storage);
    else this.#free(storage);
  }

  #free(storage: Storage): void {
    if (!this.#memory.free(storage)) return;
    for (const copy of storage.halfCopies?.storages() ?? []) this.#handles.drop(copy);
  }
}
