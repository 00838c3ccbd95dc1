import type { Binding } from "@halfstep/device";
import type { FlatTensors } from "./flat-tensors.js";
import type { ResidentStorage } from "./parameter-storage.js";

/** A parameter group with its optimizer's buffers. */
export interface KeptGroup<B> {
  readonly params: FlatTensors<B>;
  readonly storage: ResidentStorage<B>;
  /** One uint32: the number of applied steps. */
  readonly applied: Binding<B>;
  /** The control words of `stepControl`: `[0 where skipped, …]`. */
  readonly control: Binding<B>;
}

/** A parameter group whose values other code may write, with these calls. */
export interface WritableGroup<B> extends KeptGroup<B> {
  /** Adopts values that other code has written. */
  adoptWritten(): void;
  /** Declares that the values equal those of the last step again. */
  keepValues(): void;
}

/** The update of one group within a step. */
export interface GroupStep<B> extends KeptGroup<B> {
  /** Index of the group in the optimizer. */
  readonly index: number;
  /** Of the rule and of the storage, by name. */
  readonly scalars: Readonly<Record<string, number>>;
}

/** Observes the steps of an optimizer: averages and meters. */
export interface StepObserver<B> {
  /** Called before any launch. An error refuses the step. */
  begin?(): void;
  /** Called before a group is updated. A returned storage replaces the group's own for this step. */
  before?(step: GroupStep<B>): Pick<ResidentStorage<B>, "kind" | "buffers"> | undefined;
  after?(step: GroupStep<B>): void;
}
