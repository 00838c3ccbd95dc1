import {
  agreedMode,
  DiLoCo,
  GradientExchange,
  type ReducibleOptimizer,
  StatisticsExchange,
  type Wire,
} from "@halfstep/distributed";
import { type Module, syncBatchNorm } from "@halfstep/nn";
import type {
  BatchPart,
  FlatVariables,
  Generator,
  Runtime,
  Storage,
  Variable,
} from "@halfstep/tensor";
import type { Job } from "./cli/job.js";
import type { TrainingHook } from "./hooks.js";

/**
 * How the ranks of a job work together: they average the gradients of every step, or train alone for some steps and then average their
 * parameters. With "zero1" each rank steps a part of the parameters, and has that part of the optimizer's state; "auto" is that where ranks
 * compute on different adapters, and else "allReduce".
 */
export type ExchangeMode = "allReduce" | "zero1" | "auto" | "diloco";

/** Options of the exchange between ranks. */
export interface JobExchangeOptions {
  readonly runtime: Runtime;
  /** Default "allReduce". */
  readonly mode?: ExchangeMode | undefined;
  /** The format in which numbers travel. Default "auto". */
  readonly wire?: Wire | undefined;
  /** Of "diloco": the steps of each rank between two exchanges. Default 20. */
  readonly innerSteps?: number | undefined;
  /** The number of the last step of training. */
  readonly lastStep: number;
  readonly parameters: Iterable<Variable>;
  /** A model whose batch norms normalise by the batch of all ranks: see `syncBatchNorm`. Not with "diloco". Default: none. */
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
  /** The groups for an optimizer: with "zero1", what this rank steps of them. Call it once. */
  readonly shard: <G extends { readonly params: FlatVariables }>(
    groups: readonly G[],
  ) => readonly G[];
  /** For the option `hooks`. */
  readonly hooks: Readonly<Record<string, TrainingHook>>;
  /**
   * For the option `reduce`: averages the gradients of the step, weighted by the number of samples that this rank has in it. Undefined where
   * gradients are not exchanged.
   */
  readonly reduce: ((optimizer: ReducibleOptimizer<Storage>, weight: number) => void) | undefined;
  /** Gives this rank the float32 parameters of all. All ranks call it, before evaluation and after training. */
  readonly complete: () => Promise<void>;
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
  const { runtime, mode = "allReduce", wire, innerSteps, lastStep, parameters } = options;
  const { synchronized, generator } = options;
  const alone: JobExchange = {
    ...{ hooks: {}, reduce: undefined, begin: () => {} },
    shard: (groups) => groups,
    complete: async () => {},
  };
  if (!job?.carrier) return alone;
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
    return { ...alone, hooks: { diloco }, begin };
  }
  const agreed = mode === "auto" ? await agreedMode(job.carrier, runtime.label) : mode;
  const gradients = new GradientExchange(job.carrier, { mode: agreed, wire });
  const complete = (): Promise<void> => gradients.complete();
  return {
    shard(groups) {
      const shards = gradients.shard(
        runtime,
        groups.map(({ params }) => params),
      );
      return groups.map((group, i) => ({ ...group, params: shards[i] as FlatVariables }));
    },
    hooks: agreed === "zero1" ? { shards: { beforeSave: complete } } : {},
    reduce: (optimizer, weight) => gradients.reduce(optimizer, { weight }),
    ...{ complete, begin },
  };
}
