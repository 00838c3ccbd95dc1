import type { Binding, KernelView } from "@halfstep/device";
import type { Plan } from "../plan/plan.js";
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

export interface ReadOptions {
  /** "background" is a read that no step waits for: it is not counted as a wait of the host. Default "host". */
  readonly wait?: "host" | "background";
}

/** Executes plans and holds memory: on a GPU, or on the CPU. */
export interface Runner {
  /** What plans are made for; part of every plan's key. */
  readonly kind: "gpu" | "cpu";
  /** The class of a GPU, as its kernels know it. */
  readonly hardwareClass?: string;
  readonly label: string;
  /** Zeroed memory of at least this many bytes. */
  allocate(bytes: number): Memory;
  release(memory: Memory): void;
  /** Writes elements in order with what runs. */
  write(binding: Binding<Memory>, data: HostData): void;
  /** The elements of a binding, decoded, as they are after everything that was run so far. */
  read(binding: Binding<Memory>, options?: ReadOptions): Promise<KernelView>;
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
