import type { Binding, CompileProgress } from "@halfstep/device";
import type { Plan, PlanBuffer } from "../plan/plan.js";
import type { HostFunction } from "../record/host-op.js";
import type { MemoryOwner } from "../record/resident-memory.js";
import type { HostData, Memory } from "../record/storage.js";

/** The data of one recording that a plan runs with: everything outside its structure. */
export interface Invocation {
  /** Memory of the residents, in the order of first appearance. */
  readonly residents: readonly Memory[];
  /** Host data for each input of the recording. */
  readonly inputs: readonly {
    readonly data: HostData;
    readonly binding: Omit<Binding<never>, "buffer">;
  }[];
  /** The scalar of a launch of the recording. Valid until the run ends. */
  scalar(launch: number, name: string): number;
  /** The function of a host op of the recording, by its position there. Valid until the run ends. */
  hostFunction(launch: number): HostFunction;
  /** Called when the run compiles programs: see {@link PrepareOptions}. */
  readonly onCompile?: PrepareOptions["onCompile"];
  /** Called when all of the run is submitted, or lost because a function of the host failed. */
  readonly onEnd?: (isLost: boolean) => void;
}

/** Options of compiling a plan ahead. */
export interface PrepareOptions {
  /** Called before the first program that was not compiled yet, and after each. */
  readonly onCompile?: ((progress: CompileProgress) => void) | undefined;
  /** Aborts: the call rejects with the signal's reason, and programs that are compiled stay compiled. */
  readonly signal?: AbortSignal | undefined;
}

/** One run of a plan, which may stop between launches. All methods are synchronous. */
export interface PlanRun {
  /** Runs the launches up to position `end`, from where the last call stopped. Values stay in place between calls. */
  runTo(end: number): void;
  /**
   * The memory of a buffer of the plan, until the run ends: to read results of earlier launches, or to write operands of later
   * ones. The plan's `values` list the contents of slots.
   */
  memoryOf(buffer: PlanBuffer): Memory;
  /** Runs the rest, and ends the run. Returns memory that holds each transient that the recording keeps; it is the caller's. */
  finish(): readonly Memory[];
  /** Ends the run without its remaining launches. */
  abandon(): void;
}

/** Executes plans and holds memory. `runnerContract` of `@halfstep/tensor/testing` tests one. */
export interface Runner extends MemoryOwner {
  /** The kind of hardware, for people and for checks against mixed runtimes. The package makes no other decision by it. */
  readonly kind: "cpu" | "gpu" | (string & {});
  /** Its name in messages. */
  readonly label: string;
  /** The class of the hardware as kernels know it (`capabilities.hardware.class` of a device). Plans depend on it. */
  readonly hardwareClass?: string | undefined;
  /** The most bytes that a launch can bind of one buffer. Absent where there is no limit. */
  readonly maxBindingBytes?: number | undefined;
  /**
   * Begins a run of a plan; the plan's memory is assigned at its first run. Where it throws (a refused launch, a
   * MemoryBudgetError), nothing has run, and no memory was taken for kept values. One run is open at a time.
   */
  start(plan: Plan, invocation: Invocation): PlanRun;
  /** Compiles the programs of a plan, each once, and runs nothing. */
  prepare(plan: Plan, options?: PrepareOptions): Promise<void>;
  /** Releases memory that only these plans use. Plans may run again. */
  forget(plans: Iterable<Plan>): void;
  /** Destroys released memory that is kept for reuse. Absent where none is. */
  trim?(): void;
  /** Waits while too many steps are in flight, and rejects if one has failed. */
  ready(): Promise<void>;
  /** Rejects if the runner has failed, with the same error from then on. Waits neither for runs nor for functions of host ops. */
  assertWell(): Promise<void>;
  /** Resolves when no run waits for the function of a host op. Absent where runs never wait. */
  exchanged?(): Promise<void>;
}
