import { DTypeError } from "@halfstep/autocast";
import {
  type Binding,
  checkLaunch,
  type DType,
  type HalfDType,
  type KernelView,
  type Launch,
  type LaunchTarget,
} from "@halfstep/device";
import { bytesFor, isFloating } from "@halfstep/formats/dtypes";
import { copyWords } from "@halfstep/kernels/planner";
import { requireDType } from "../dtypes.js";
import { RecordingError } from "../errors.js";
import { sizeOf } from "../shapes.js";
import { type CopyMemory, halfCopiesOf } from "./half-copies.js";
import { Handles } from "./handles.js";
import type { HeldTensor, MakeTensor } from "./recorded-tensor.js";
import { Recording } from "./recording.js";
import { isRepeatedWrite } from "./repetition.js";
import type { ReadOptions, ResidentMemory } from "./resident-memory.js";
import type { StepSearches } from "./step-searches.js";
import { copyOf, type HostData, type Placement, Storage } from "./storage.js";
import { requireSynchronous } from "./synchronous.js";
import { type RunRecording, Unended } from "./unended.js";

/** A recording outside a step closes by itself at this many launches. */
const longestRecording = 10_000;

/**
 * Holds a runtime's open recording. Ops and backward passes append to the recording and get their results from the recorder. The
 * recorder closes and runs the recording, or drops it, and frees memory without handles.
 */
export class Recorder<T extends HeldTensor> {
  /** The target of ops' launches; its memory is scratch of the recording. */
  readonly scratchTarget: LaunchTarget<Storage>;
  /** The tensors that keep their memory. */
  readonly handles: Handles<T>;
  /** Searches steps, where options of the runtime ask for it. */
  searches: StepSearches | undefined;
  /** Whether later recordings note the op to which each launch belongs. */
  noteOps: boolean;
  readonly #make: MakeTensor<T>;
  readonly #memory: ResidentMemory;
  readonly #run: RunRecording;
  readonly #unended: Unended = new Unended();
  readonly #copyMemory: CopyMemory;
  #recording: Recording;
  #isInStep = false;
  #clock = 0;
  #recordings = 0;
  /** The parameters that launches appended inside `updateParameters` update. */
  #updated: Storage | undefined;

  constructor(
    memory: ResidentMemory,
    hooks: {
      readonly make: MakeTensor<T>;
      readonly run: RunRecording;
    },
    options: {
      readonly noteOps: boolean;
      readonly hardwareClass?: string | undefined;
    },
  ) {
    this.#make = hooks.make;
    this.#run = hooks.run;
    this.#memory = memory;
    this.noteOps = options.noteOps;
    this.scratchTarget = {
      hardwareClass: options.hardwareClass,
      launch: (launch) => this.append(launch),
      allocate: (bytes) => this.transient(bytes),
    };
    this.#copyMemory = {
      allocate: (bytes) => memory.allocate(bytes),
      release: (copy) => this.handles.drop(copy),
    };
    this.handles = new Handles((storage) => this.#release(storage));
    this.#recording = this.#newRecording();
  }

  get recording(): Recording {
    return this.#recording;
  }
  get isInStep(): boolean {
    return this.#isInStep;
  }
  /** Increases with every write to resident memory. */
  get clock(): number {
    return this.#clock;
  }

  /** Called at the beginning of an op: a long recording outside a step closes between ops, never inside one. */
  beforeOp(): void {
    this.#memory.assertUsable();
    if (!this.#isInStep && this.#recording.launches.length >= longestRecording) this.flush();
  }

  append(launch: Launch<Storage>): void {
    const { bindings } = launch;
    for (let b = 0; b < bindings.length; b++)
      if ((bindings[b] as Binding<Storage>).buffer.owner !== this.#memory)
        throw new RecordingError(
          `${launch.kernel.name}: its operands belong to different runtimes. Make all tensors with one runtime, or copy the data over.`,
        );
    try {
      checkLaunch(launch);
    } catch (error) {
      refuseIntegers(launch);
      throw error;
    }
    if (!isRepeatedWrite(launch)) this.#recording.append(launch, this.#updated);
  }

  /** Calls `update`, whose launches update these parameters in place. */
  updateParameters({ buffer }: Binding<Storage>, update: () => void): void {
    const outer = this.#updated;
    this.#updated = buffer;
    try {
      update();
    } finally {
      this.#updated = outer;
    }
  }

  /** Memory of the open recording, which the planner assigns to a slot. */
  transient(bytes: number): Storage {
    const storage = new Storage(this.#memory, Math.ceil(bytes / 16) * 16);
    storage.recording = this.#recording;
    this.#recording.transients.push(storage);
    return storage;
  }

  /** A copy of memory that ends inside a quad, made once in a recording, because kernels bind whole quads. */
  wholeQuads(storage: Storage): Storage {
    const { wholeQuads } = this.#recording;
    const known = wholeQuads.get(storage);
    if (known) return known;
    const copy = this.transient(storage.byteLength);
    const words = { offset: 0, length: storage.byteLength / 4, dtype: "uint32" } as const;
    this.append(
      copyWords({ input: { ...words, buffer: storage }, out: { ...words, buffer: copy } }),
    );
    wholeQuads.set(storage, copy);
    return copy;
  }

  /**
   * Result of an op.
   * @throws TypeError for a dtype that tensors do not have
   */
  result(shape: readonly number[], dtype: DType): T {
    requireDType(dtype);
    const storage = this.transient(bytesFor(dtype, Math.max(1, sizeOf(shape))));
    return this.#viewing({ storage, offset: 0 }, shape, dtype);
  }

  /** A tensor of numbers of the host, which lives as long as the open step. */
  input(values: HostData, shape: readonly number[], dtype: DType): T {
    const tensor = this.result(shape, dtype);
    const { storage } = tensor;
    storage.hostData = copyOf(values);
    storage.inputBinding = { offset: 0, length: values.length, dtype };
    this.#recording.inputs.push(storage);
    return tensor;
  }

  /** The same memory in another shape; or as another dtype of as many bits, which it then holds bit by bit. */
  viewOf(tensor: T, shape: readonly number[], dtype: DType = tensor.dtype): T {
    tensor.assertUsable();
    const { storage, offset } = tensor;
    return this.#viewing({ storage, offset }, shape, dtype);
  }

  /** The half copy of a float32 tensor in a 16-bit format; undefined where there is none. */
  halfCopyOf(tensor: T, dtype: HalfDType): T | undefined {
    if (!this.#isInStep) return undefined;
    const copies = halfCopiesOf(tensor.storage);
    const place = copies?.placeOf(tensor.offset, dtype, this.#recording, this.#copyMemory);
    if (!place) return undefined;
    const copy = this.#make(place, tensor.shape, dtype);
    // A copy has the name of its original in errors and dumps.
    const { name } = tensor;
    return this.#recording.notes && name ? Object.assign(copy, { name }) : copy;
  }

  /** Registers a function that restores host state if the open step is dropped. */
  onDrop(undo: () => void): void {
    if (this.#isInStep) this.#recording.onDrop(undo);
  }

  /** Records `fn` and submits it. If `fn` throws, the step is dropped without effect. */
  step<R>(fn: () => R): R {
    this.#memory.assertUsable();
    this.flush();
    this.#isInStep = true;
    this.searches?.begin(this.#recording);
    let result: R;
    try {
      result = fn();
    } catch (error) {
      this.abandon();
      throw error;
    } finally {
      this.#isInStep = false;
    }
    this.#close();
    return result;
  }

  /** Calls `fn` as in a step, and drops what it recorded. Errors name `caller`. */
  rehearse<R>(caller: string, fn: () => R): R {
    this.assertNotInStep(`${caller}()`);
    this.#memory.assertUsable();
    this.flush();
    this.#isInStep = true;
    try {
      return requireSynchronous(caller, fn());
    } finally {
      this.abandon();
      this.#isInStep = false;
    }
  }

  /** Records `fn` as the next step, passes the whole recording to `use`, and drops it. */
  rehearseStep<R>(caller: string, fn: () => void, use: (recording: Recording) => R): R {
    return this.rehearse(caller, () => {
      const recording = this.#recording;
      this.searches?.rehearse(recording);
      fn();
      this.#complete(recording);
      return use(recording);
    });
  }

  /** Submits a recording outside a step: every tensor that has a handle stays. */
  flush(): void {
    for (const storage of this.#recording.transients)
      if (storage.handles > 0) this.#recording.kept.add(storage);
    this.#close();
  }

  /** Replaces elements of a resident, after everything recorded outside a step and before what the open step recorded. */
  write(binding: Binding<Storage>, values: ArrayLike<number>): void {
    if (!this.#isInStep) this.flush();
    this.#memory.write(binding, values);
    binding.buffer.halfCopies?.valuesWritten(this.#recording);
  }

  /** The elements of a resident, after everything that was recorded. */
  async read(binding: Binding<Storage>, options?: ReadOptions): Promise<KernelView> {
    this.assertNotInStep("a read");
    this.flush();
    return this.#memory.read(binding, options);
  }

  assertNotInStep(what: string): void {
    if (this.#isInStep)
      throw new RecordingError(
        `${what} inside a step: nothing is computed before it ends. Return the tensor and read it after the step.`,
      );
  }

  /** Refuses, within a step, a call that changes what a dropped step could not restore. */
  requireNoStep(call: string): void {
    if (this.#isInStep)
      throw new RecordingError(
        `${call} inside a step: it changes what a step that is dropped could not restore. Call it before the step, or between two.`,
      );
  }

  /** Outside a step every tensor keeps its memory. */
  #viewing(place: Placement, shape: readonly number[], dtype: DType): T {
    const tensor = this.#make(place, shape, dtype);
    return this.#isInStep ? tensor : this.handles.track(tensor);
  }

  #close(): void {
    const recording = this.#recording;
    const { launches, inputs, kept } = recording;
    // A result without elements is kept even if the recording has no launches.
    if (launches.length > 0 || inputs.length > 0 || kept.size > 0) {
      try {
        const submitted = this.#complete(recording);
        const ending = this.#unended.open(() => this.abandon());
        this.#run(recording, ending.onEnd);
        ending.keep(recording);
        submitted?.();
      } catch (error) {
        this.abandon();
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

  /** Adds the launches of observers and searches. Returns a function to call when the recording is submitted. */
  #complete(recording: Recording): (() => void) | undefined {
    const allocate = (bytes: number): Storage => this.transient(bytes);
    for (const complete of recording.completions) complete(recording, allocate);
    return this.searches?.insert(recording, allocate);
  }

  /** Drops the open recording and restores host state. */
  abandon(): void {
    const recording = this.#recording;
    recording.drop();
    for (const storage of recording.released) this.#free(storage);
    recording.clear();
    this.#recording = this.#newRecording();
  }

  #newRecording(): Recording {
    return new Recording(++this.#recordings, () => ++this.#clock, this.noteOps);
  }

  /** Called with the last handle of this memory gone: the memory is freed once the open recording no longer needs it. */
  #release(storage: Storage): void {
    if (!storage.isResident) return;
    if (this.#recording.launches.length > 0) this.#recording.released.push(storage);
    else this.#free(storage);
  }

  #free(storage: Storage): void {
    if (!this.#memory.free(storage)) return;
    for (const copy of storage.halfCopies?.storages() ?? []) this.handles.drop(copy);
  }
}

/** Throws a DTypeError where the reason that a launch does not fit its kernel is an integer operand. */
function refuseIntegers({ kernel, bindings }: Launch<Storage>): void {
  for (const [b, { dtype }] of bindings.entries())
    if (!isFloating(dtype) && !kernel.bindings[b]?.dtypes?.includes(dtype))
      throw new DTypeError(
        `${kernel.name} does not compute with integers: its operand ${b + 1} is ${dtype}; cast it with to("float32")`,
      );
}
