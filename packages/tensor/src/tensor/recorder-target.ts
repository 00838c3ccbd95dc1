import type { Binding, HalfDType, KernelView, Launch } from "@halfstep/device";
import type { ResidentTarget } from "@halfstep/kernels";
import type { ReadOptions } from "../record/resident-memory.js";
import type { Storage } from "../record/storage.js";
import type { TensorAmpPrimitives } from "./amp.js";

/** How a step reads a resident. */
export interface StorageReads {
  /** The ranges that its launches read. */
  readonly bindings: readonly Binding<Storage>[];
  /** The formats in which it reads rounded copies. */
  readonly copies: readonly HalfDType[];
}

/** A target of launches inside a runtime's recording, for optimizers and scalers. */
export interface RecorderTarget extends ResidentTarget<Storage> {
  /** The most bytes that a launch can bind of one buffer. Absent where there is no limit. */
  readonly maxBindingBytes?: number | undefined;
  /** Scratch inside a step; resident memory outside. */
  allocate(bytes: number): Storage;
  /** Zeroed resident memory, also inside a step. */
  allocateResident(bytes: number): Storage;
  /** Replaces elements of a resident before the next submitted step. */
  write(binding: Binding<Storage>, values: ArrayLike<number>): void;
  /** The elements of a resident, decoded, after everything recorded so far. */
  read(binding: Binding<Storage>, options?: ReadOptions): Promise<KernelView>;
  /** The primitives of loss scaling, for optimizers that scale losses themselves; undefined where the entry `@halfstep/tensor` is not loaded. */
  readonly ampPrimitives: TensorAmpPrimitives | undefined;
  /** Calls `update`, whose launches update the parameters `values`: the half copies that steps read stay up to date. */
  updateParameters(values: Binding<Storage>, update: () => void): void;
  /** How the open step reads a resident so far. */
  readsOf(buffer: Storage): StorageReads;
  /** Registers a function that restores host state if the open recording is dropped because its step throws. */
  onRollback(undo: () => void): void;
  /** Throws a RecordingError within a step: `call` changes what a dropped step could not restore. */
  requireNoStep(call: string): void;
}

/** The functions of a runtime that its target calls. */
export interface RecorderHooks {
  /** The class of the hardware that runs the recordings, where it is known. */
  readonly hardwareClass?: string | undefined;
  readonly maxBindingBytes?: number | undefined;
  lossScaling(): TensorAmpPrimitives | undefined;
  launch(launch: Launch<Storage>): void;
  updateParameters(values: Binding<Storage>, update: () => void): void;
  /** Scratch of the open step; undefined where none is open. */
  transient(bytes: number): Storage | undefined;
  resident(bytes: number): Storage;
  write(binding: Binding<Storage>, values: ArrayLike<number>): void;
  readsOf(buffer: Storage): StorageReads;
  /** Resolves when the open step has been submitted; undefined where none is open. */
  afterStep(): Promise<void> | undefined;
  read(binding: Binding<Storage>, options?: ReadOptions): Promise<KernelView>;
  onDrop(undo: () => void): void;
  requireNoStep(call: string): void;
}

export const recorderTarget = (hooks: RecorderHooks): RecorderTarget => ({
  get ampPrimitives() {
    return hooks.lossScaling();
  },
  hardwareClass: hooks.hardwareClass,
  maxBindingBytes: hooks.maxBindingBytes,
  launch: hooks.launch,
  updateParameters: hooks.updateParameters,
  allocate: (bytes) => hooks.transient(bytes) ?? hooks.resident(bytes),
  allocateResident: hooks.resident,
  write: hooks.write,
  async read(binding, options) {
    // A read inside a step happens when the step has been submitted.
    const step = hooks.afterStep();
    if (step) await step;
    return hooks.read(binding, options);
  },
  readsOf: hooks.readsOf,
  onRollback: hooks.onDrop,
  requireNoStep: hooks.requireNoStep,
});
