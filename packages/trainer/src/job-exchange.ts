import {
  DiLoCo,
  GradientExchange,
  type ReducibleOptimizer,
  StatisticsExchange,
  type Wire,
} from "@halfstep/distributed";
import { type Module, syncBatchNorm } from "@halfstep/nn";
import type { BatchPart, Generator, Storage, Variable } from "@halfstep/tensor";
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
  /** A model whose batch norms normalise by the batch of all ranks: see `syncBatchNorm`. Only with "allReduce". Default: none. */
  readonly synchronized?: Module | undefined;
  /** Draws the masks of the model: those of a sample are then the same for every number of ranks. Default: none. */
  readonly generator?: Generator | undefined;
}

/** The share of this rank in a batch, as `shareOf` of `@halfstep/data` cuts it. */
export interface BatchShare {
  /** Number of samples, or 0 where this rank only repeats one of another. */
  readonly weight: number;
  readonly part: BatchPart;
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
  /** Call it in the option `loss`, before the batch is recorded: random numbers and batch norms follow the share. */
  readonly begin: (share: BatchShare) => void;
}

/**
 * The exchange between the ranks of a job; none where this process is the only one.
 * @throws TypeError where batch norms are to be synchronized between ranks that train alone
 */
export async function jobExchange(
  job: Job | undefined,
  options: JobExchangeOptions,
): Promise<JobExchange> {
  const { mode = "allReduce", wire, innerSteps, lastStep, parameters, optimizer } = options;
  const { synchronized, generator } = options;
  if (!job?.carrier) return { hooks: {}, reduce: undefined, begin: () => {} };
  if (synchronized && mode === "diloco")
    throw new TypeError(
      "ranks of diloco take their steps alone: their batch norms cannot wait for each other",
    );
  const statistics = new StatisticsExchange(job.carrier);
  if (synchronized) syncBatchNorm(synchronized, statistics);
  const begin = ({ weight, part }: BatchShare): void => {
    statistics.isCounted = weight > 0;
    if (generator) generator.part = part;
  };
  if (mode === "diloco") {
    const diloco = new DiLoCo(job.carrier, parameters, { innerSteps, lastStep, wire });
    await diloco.begin();
    return { hooks: { diloco }, reduce: undefined, begin };
  }
  const gradients = new GradientExchange(job.carrier, { wire });
  return { hooks: {}, reduce: (weight) => gradients.reduce(optimizer, { weight }), begin };
}
