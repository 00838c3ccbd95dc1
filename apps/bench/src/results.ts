import type { EngineReport } from "@halfstep/kernels";
import type { Calls } from "./calls.js";
import type { KernelTime } from "./kernel-clock.js";
import type { Facts, Precision } from "./lanes/prepared.js";
import type { Spread } from "./statistics.js";
import type { Cost } from "./workload.js";

/** The results of one lane on one row. */
export type Outcome =
  | Measured
  /** The library has no such operation or precision. */
  | { readonly status: "absent" }
  /** Its numbers are not those of the others: it was not timed. */
  | { readonly status: "wrong"; readonly difference: number }
  | { readonly status: "failed"; readonly reason: string };

export interface Measured {
  readonly status: "measured";
  readonly milliseconds: Spread;
  /** CPU time of all threads of its process, without waits; absent where the system does not report it. */
  readonly cpuMilliseconds?: Spread;
  /** Of which the samples come: a lane that is slow to prepare has one. */
  readonly processes: readonly ProcessFigures[];
  readonly hostMicroseconds: number;
  readonly callsPerStep: Calls;
  readonly peakBytes: number;
  readonly facts?: Facts;
  /** Longest first, of our own lane alone. */
  readonly kernels?: readonly KernelTime[];
  /** Largest difference from our float32 result, relative to its largest element. */
  readonly difference: number;
  /** How many times our time it took, in the same rounds. */
  readonly ratio?: number;
  /**
   * The least time that the machine's limits allow, divided by the measured time; both in CPU time on a software
   * adapter.
   */
  readonly fractionOfLimit: number;
  readonly itemsPerSecond?: number;
}

/** The counts of each process, which should be equal in all processes. */
export interface Counted extends Calls, Partial<Facts> {
  readonly peakBytes: number;
  /** Dispatches of kernels that the first process did not run. */
  readonly otherKernels: number;
}

/** One of a lane's processes on a row. */
export interface ProcessFigures {
  /** 1 is the first. */
  readonly process: number;
  readonly rounds: number;
  /** Medians over its rounds. */
  readonly milliseconds: number;
  readonly cpuMilliseconds?: number;
  /** How many times our time it took, in the same rounds. */
  readonly ratio?: number;
  /** Its counts that differ from the first process. */
  readonly counted?: Partial<Counted>;
}

export interface Row {
  readonly workload: string;
  readonly title: string;
  readonly level: "operation" | "training" | "scaling";
  readonly name: string;
  readonly precision: Precision;
  readonly cost: Cost;
  readonly items?: { readonly count: number; readonly unit: string };
  readonly point?: { readonly axis: string; readonly value: number; readonly parameters: number };
  readonly tolerance: number;
  readonly outcomes: Readonly<Record<string, Outcome>>;
}

/** The limits of the machine, measured between the repetitions of one workload. */
export interface Limits {
  /** Whether seconds are of CPU time, all threads together, as on software adapters. */
  readonly isCpuTime: boolean;
  readonly copyBytesPerSecond: number;
  readonly operationsPerSecond: number;
}

export interface Report {
  readonly schema: 2;
  readonly date: string;
  readonly mode: "full" | "quick";
  readonly rounds: number;
  /** Fresh processes of each lane that the rounds were divided among. */
  readonly processes: number;
  readonly machine: Machine;
  readonly lanes: readonly {
    readonly name: string;
    readonly title: string;
    readonly version?: string;
    readonly missing?: string;
  }[];
  readonly limits: Readonly<Record<string, Limits>>;
  readonly rows: readonly Row[];
  readonly wallSeconds: number;
}

export interface Machine {
  readonly adapter: string;
  readonly tier: string;
  /** How it multiplies matrices. Earlier reports leave it out. */
  readonly products?: EngineReport;
  readonly features: readonly string[];
  readonly processor: string;
  readonly cores: number;
  readonly platform: string;
  readonly node: string;
  /** Whether the adapter computes on the processor. */
  readonly isSoftware: boolean;
  /** One-minute load average before and after: what else kept the machine busy, and we. */
  readonly load: readonly [before: number, after: number];
}
