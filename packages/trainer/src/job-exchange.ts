import {
  DiLoCo,
  GradientExchange,
  type ReducibleOptimizer,
  type Wire,
} from "@halfstep/distributed";
import type { Storage, Variable } from "@halfstep/tensor";
import type { Job } from "./cli/job.js";
import type { TrainingHook } from "./hooks.js";

/**
 * How the ranks of a job work together: they average the gradients of every step, or train alone for some steps and then average their
 * parameters.
 */
export type ExchangeMode = "allReduce" | "diloco";

/** Options of the exchange between ranks. */
export interface JobExchangeOptions {
  /** Default "allReduce". */
  readonly mode?: ExchangeMode | undefined;
  /** The format in which numbers travel. Default "auto". */
  readonly wire?: Wire | undefined;
  /** Of "diloco": the steps of each rank between two exchanges. Default 20. */
  readonly innerSteps?: number | undefined;
  /** The number of the last step of training. */
  readonly lastStep: number;
  readonly parameters: Iterable<Variable>;
  readonly optimizer: ReducibleOptimizer<Storage>;
}

/** The exchange between the ranks of a job, as `train()` takes it. */
export interface JobExchange {
  /** For the option `hooks`. */
  readonly hooks: Readonly<Record<string, TrainingHook>>;
  /**
   * For the option `reduce`: averages the gradients of the step, weighted by the number of samples that this rank has in it. Undefined where
   * gradients are not exchanged.
   */
  readonly reduce: ((weight: number) => void) | undefined;
}

/** The exchange between the ranks of a job; none where this process is the only one. */
export async function jobExchange(
  job: Job | undefined,
  { mode = "allReduce", wire, innerSteps, lastStep, parameters, optimizer }: JobExchangeOptions,
): Promise<JobExchange> {
  if (!job?.carrier) return { hooks: {}, reduce: undefined };
  if (mode === "diloco") {
    const diloco = new DiLoCo(job.carrier, parameters, { innerSteps, lastStep, wire });
    await diloco.begin();
    return { hooks: { diloco }, reduce: undefined };
  }
  const gradients = new GradientExchange(job.carrier, { wire });
  return { hooks: {}, reduce: (weight) => gradients.reduce(optimizer, { weight }) };
}
