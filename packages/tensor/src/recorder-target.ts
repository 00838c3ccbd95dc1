import type { Binding, KernelView } from "@halfstep/device";
import type { ResidentTarget } from "@halfstep/kernels";
import type { TensorAmpPrimitives } from "./amp.js";
import type { ReadOptions } from "./run/runner.js";
import type { Storage } from "./storage.js";

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
  /** Keeps what to undo if the open recording is dropped because its step throws. */
  onRollback(undo: () => void): void;
}
