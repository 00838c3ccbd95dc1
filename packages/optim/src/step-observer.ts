import type { Binding } from "@halfstep/device";
import type { FlatTensors } from "./flat-tensors.js";
import type { ResidentStorage } from "./parameter-storage.js";

/** A parameter group as its optimizer keeps it. */
export interface KeptGroup<B> {
  readonly params: FlatTensors<B>;
  readonly storage: ResidentStorage<B>;
  /** One uint32: how many steps were applied. */
  readonly applied: Binding<B>;
  /** What `stepControl` leaves in each step: `[0 where skipped, …]`. */
  readonly control: Binding<B>;
}

/** A parameter group whose values others may write, if they say so. */
export interface WritableGroup<B> extends KeptGroup<B> {
  /** Takes over values that somebody else has written. */
  adoptWritten(): void;
  /** Says that the values are those of the last step again. */
  keepValues(): void;
}

/** The update of one group within a step. */
export interface GroupStep<B> extends KeptGroup<B> {
  /** Place of the group among those of the optimizer. */
  readonly index: number;
  /** Of the rule and of the storage, by name. */
  readonly scalars: Readonly<Record<string, number>>;
}

/** Watches the steps of an optimizer from within: averages and meters. */
export interface StepObserver<B> {
  /** Before anything is launched. What it throws refuses the step. */
  begin?(): void;
  /** Before a group is updated. A storage that it returns takes the place of the group's own, for this step. */
  before?(step: GroupStep<B>): Pick<ResidentStorage<B>, "kind" | "buffers"> | undefined;
  after?(step: GroupStep<B>): void;
}
