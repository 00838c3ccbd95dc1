import type { Binding } from "@halfstep/device";
import type { Plan } from "../plan/plan.js";
import type { MemoryOwner } from "../record/resident-memory.js";
import type { HostData, Memory } from "../record/storage.js";

/** What a plan needs from one recording: everything that is not in its structure. */
export interface Invocation {
  /** Memory of the residents, in the order of first appearance. */
  readonly residents: readonly Memory[];
  /** What the host supplies, for each input of the recording. */
  readonly inputs: readonly {
    readonly data: HostData;
    readonly binding: Omit<Binding<never>, "buffer">;
  }[];
  /** The scalar of a launch of the recording. */
  scalar(launch: number, name: string): number;
}

/** Executes plans and holds memory: on a GPU, or on the CPU. */
export interface Runner extends MemoryOwner {
  /** The class of a GPU, as its kernels know it. */
  readonly hardwareClass?: string;
  readonly label: string;
  /**
   * Runs a plan, and returns memory that holds each transient that the recording keeps. Where it throws (a refused launch, a
   * MemoryBudgetError), nothing has run, and no memory was taken for what is kept.
   */
  run(plan: Plan, invocation: Invocation): readonly Memory[];
  /** Gives back the memory that these plans were run in, which no other plan may use meanwhile. */
  forget(plans: Iterable<Plan>): void;
  /** Waits while too much is in flight, and rejects if something has failed. */
  ready(): Promise<void>;
  /** Rejects if the runner has failed. */
  assertWell(): Promise<void>;
}
