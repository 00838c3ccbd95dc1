import type { Binding, CompileProgress } from "@halfstep/device";
import type { Plan, PlanBuffer } from "../plan/plan.js";
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
  /** The scalar of a launch of the recording. To be asked before the run ends. */
  scalar(launch: number, name: string): number;
}

/** Options of compiling a plan ahead. */
export interface PrepareOptions {
  /** Called after each program that was not compiled yet. */
  readonly onCompile?: ((progress: CompileProgress) => void) | undefined;
  /** Calls it off: it rejects with the signal's reason, and what is compiled stays so. */
  readonly signal?: AbortSignal | undefined;
}

/** One run of a plan, launch by launch as far as its caller wants. Nothing of it is asynchronous. */
export interface PlanRun {
  /** Runs the launches up to position `end`, from where the last call stopped. Values stay where they are in between. */
  runTo(end: number): void;
  /**
   * The memory that stands for a buffer of the plan until the run ends: to read what launches have left, or to write what the next
   * will find. A slot holds what the plan's `values` say.
   */
  memoryOf(buffer: PlanBuffer): Memory;
  /** Runs the rest, and ends the run. Returns memory that holds each transient that the recording keeps; it is the caller's. */
  finish(): readonly Memory[];
  /** Ends the run where it stands. */
  abandon(): void;
}

/** Executes plans and holds memory. `runnerContract` of `@halfstep/tensor/testing` tests one. */
export interface Runner extends MemoryOwner {
  /** What it computes on. For people, and for what must not be mixed up: nothing is decided by it here. */
  readonly kind: "cpu" | "gpu" | (string & {});
  /** Its name in messages. */
  readonly label: string;
  /** The class of the hardware as kernels know it (`capabilities.hardware.class` of a device). Plans depend on it. */
  readonly hardwareClass?: string | undefined;
  /**
   * Begins a run of a plan, for which its memory is assigned once. Where it throws (a refused launch, a MemoryBudgetError), nothing
   * has run, and no memory was taken for what is kept. One run is open at a time.
   */
  start(plan: Plan, invocation: Invocation): PlanRun;
  /** Compiles the programs of a plan, each once, and runs nothing. */
  prepare(plan: Plan, options?: PrepareOptions): Promise<void>;
  /** Gives back the memory that these plans were run in, which no other plan may use meanwhile. */
  forget(plans: Iterable<Plan>): void;
  /** Waits while too much is in flight, and rejects if something has failed. */
  ready(): Promise<void>;
  /** Rejects if the runner has failed, with the same error from then on. */
  assertWell(): Promise<void>;
}
