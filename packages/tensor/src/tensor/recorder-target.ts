import type { Binding, KernelView, Launch } from "@halfstep/device";
import type { ResidentTarget } from "@halfstep/kernels";
import type { ReadOptions } from "../record/resident-memory.js";
import type { Storage } from "../record/storage.js";
import type { TensorAmpPrimitives } from "./amp.js";

/** A target of launches inside a runtime's recording, for optimizers and scalers. */
export interface RecorderTarget extends ResidentTarget<Storage> {
  /** Scratch inside a step; outside one, memory that stays. */
  allocate(bytes: number): Storage;
  /** Zeroed memory that stays, wherever it is asked for. */
  allocateResident(bytes: number): Storage;
  /** Replaces elements of a resident, before the next step that is submitted. */
  write(binding: Binding<Storage>, values: ArrayLike<number>): void;
  /** The elements of a resident, decoded, after everything recorded so far. */
  read(binding: Binding<Storage>, options?: ReadOptions): Promise<KernelView>;
  /** How losses of this runtime are scaled: for optimizers that scale them themselves. */
  readonly ampPrimitives: TensorAmpPrimitives;
  /** Calls `update`, whose launches update the parameters `values`: half copies of them that steps read stay up to date. */
  updateParameters(values: Binding<Storage>, update: () => void): void;
  /** Keeps what to undo if the open recording is dropped because its step throws. */
  onRollback(undo: () => void): void;
}

/** What a runtime does for its target. */
export interface RecorderHooks {
  lossScaling(): TensorAmpPrimitives;
  launch(launch: Launch<Storage>): void;
  updateParameters(values: Binding<Storage>, update: () => void): void;
  /** Scratch of the open step; undefined where none is open. */
  transient(bytes: number): Storage | undefined;
  resident(bytes: number): Storage;
  write(binding: Binding<Storage>, values: ArrayLike<number>): void;
  /** Resolves when the open step has been submitted; undefined where none is open. */
  afterStep(): Promise<void> | undefined;
  read(binding: Binding<Storage>, options?: ReadOptions): Promise<KernelView>;
  onDrop(undo: () => void): void;
}

export const recorderTarget = (hooks: RecorderHooks): RecorderTarget => ({
  get ampPrimitives() {
    return hooks.lossScaling();
  },
  launch: hooks.launch,
  updateParameters: hooks.updateParameters,
  allocate: (bytes) => hooks.transient(bytes) ?? hooks.resident(bytes),
  allocateResident: hooks.resident,
  write: hooks.write,
  async read(binding, options) {
    // Asked for inside a step, it is read when the step has been submitted.
    const step = hooks.afterStep();
    if (step) await step;
    return hooks.read(binding, options);
  },
  onRollback: hooks.onDrop,
});
