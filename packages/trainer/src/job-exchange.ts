import {
  agreedMode,
  type CompressionState,
  DiLoCo,
  GradientExchange,
  type ReducibleOptimizer,
  StatisticsExchange,
  type Wire,
} from "@halfstep/distributed";
import type { GradScaler } from "@halfstep/grad-scaler";
import { type Module, syncBatchNorm } from "@halfstep/nn";
import type {
  BatchPart,
  FlatVariables,
  Generator,
  Runtime,
  Storage,
  Tensor,
  Variable,
} from "@halfstep/tensor";
import type { CheckpointStore } from "./checkpoint/checkpoint.js";
import { readingOnly } from "./checkpoint/reading-only.js";
import type { Job } from "./cli/job.js";
import type { TrainingHook } from "./hooks.js";
import { type Kinds, requireKinds } from "./option-kinds.js";
import { requireOptions } from "./required-options.js";

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
  /** Of "allReduce": columns of the factors that travel in place of the gradients of matrices, by PowerSGD. Default: whole gradients. */
  readonly powerSgd?: number | undefined;
  /** The number of the last step of training. */
  readonly lastStep: number;
  /** Ranks begin with those of rank 0. */
  readonly parameters: Iterable<Variable>;
  /** A model whose batch norms normalise by the batch of all ranks: see `syncBatchNorm`. Not with "diloco". Default: none. */
  readonly synchronized?: Module | undefined;
  /** Draws the masks of the model: those of a sample are then the same for every number of ranks. Default: none. */
  readonly generator?: Generator | undefined;
  /** Tells this rank to stop: see {@link JobExchange.signal}. */
  readonly signal?: AbortSignal | undefined;
}

/** The share of this rank in a batch, as `shareOf` of `@halfstep/data` cuts it. */
export interface BatchShare {
  /** Number of samples, or 0 where this rank only repeats one of another. */
  readonly weight: number;
  readonly part: BatchPart;
}

/** A step whose gradients are averaged. */
export interface ReducedStep {
  /** Number of samples that this rank has in it. */
  readonly weight: number;
  /** The scaler of its loss, where gradients carry a loss scale. */
  readonly scaler?: Pick<GradScaler<Storage, Tensor>, "gradScale"> | undefined;
}

/** The exchange between the ranks of a job, as `train()` takes it. */
export interface JobExchange {
  /** The groups for an optimizer: with "zero1", what this rank steps of them. Call it once. */
  readonly shard: <G extends { readonly params: FlatVariables }>(
    groups: readonly G[],
  ) => readonly G[];
  /**
   * For the option `signal`: all ranks stop after the same step, and can save what each has a part of. That is a few steps after one of
   * them was told to, and with "diloco" after the next exchange.
   */
  readonly signal: AbortSignal | undefined;
  /** For the option `hooks`. */
  readonly hooks: Readonly<Record<string, TrainingHook>>;
  /**
   * For the option `reduce`: averages the gradients of the step, weighted by the number of samples that this rank has in it. Undefined where
   * gradients are not exchanged.
   */
  readonly reduce:
    | ((optimizer: ReducibleOptimizer<Storage>, step: ReducedStep) => void)
    | undefined;
  /** Gives this rank the float32 parameters of all. All ranks call it, before evaluation and after training. */
  readonly complete: () => Promise<void>;
  /** For the option `checkpoints`: this store on rank 0, which saves for all, and one that only reads on others. */
  readonly store: (store: CheckpointStore) => CheckpointStore;
  /** Call it in the option `loss`, before the batch is recorded: random numbers and batch norms follow the share. */
  readonly begin: (share: BatchShare) => void;
}

const kinds: Kinds<JobExchangeOptions> = {
  ...{ runtime: "any", mode: "any", wire: "any", innerSteps: "any", powerSgd: "any" },
  ...{ lastStep: "any", parameters: "any", synchronized: "any", generator: "any", signal: "any" },
};

const modes: readonly ExchangeMode[] = ["allReduce", "zero1", "auto", "diloco"];

/**
 * The exchange between the ranks of a job, which begin with the parameters of rank 0; none where this process is the only one.
 *
 * @throws TypeError where batch norms are to be synchronized between ranks that train alone, and for `powerSgd` with another mode than
 * "allReduce". RangeError for another mode.
 */
export async function jobExchange(
  job: Job | undefined,
  options: JobExchangeOptions,
): Promise<JobExchange> {
  requireOptions("jobExchange", options, {
    runtime: "gpuRuntime(device) or cpuRuntime()",
    parameters: "model.parameters()",
  });
  requireKinds("jobExchange()", options, kinds);
  if (job !== undefined && !("carrier" in job && "ranks" in job))
    throw new TypeError(
      "jobExchange(job, options): job is no job: pass the job of openRun(), or { carrier, rank, size, ranks: size } of a carrier",
    );
  const { runtime, mode = "allReduce", wire, innerSteps, lastStep, parameters } = options;
  const { synchronized, generator, powerSgd, signal } = options;
  const alone: JobExchange = {
    ...{ hooks: {}, reduce: undefined, begin: () => {}, signal },
    shard: (groups) => groups,
    complete: async () => {},
    store: (store) => (job && job.rank > 0 ? readingOnly(store) : store),
  };
  if (!modes.includes(mode))
    throw new RangeError(
      `mode is ${JSON.stringify(mode)}: it must be ${modes.map((each) => JSON.stringify(each)).join(", ")}`,
    );
  const carrier = job?.carrier;
  if (!carrier) return alone;
  if (synchronized && mode === "diloco")
    throw new TypeError(
      "ranks of diloco take their steps alone: their batch norms cannot wait for each other",
    );
  if (powerSgd !== undefined && mode !== "allReduce")
    throw new TypeError(
      `powerSgd is for ranks that average whole gradients, and those of "${mode}" may not: leave one out`,
    );
  const statistics = new StatisticsExchange(carrier);
  if (synchronized) syncBatchNorm(synchronized, statistics);
  const begin = ({ weight, part }: BatchShare): void => {
    statistics.isCounted = weight > 0;
    if (generator) generator.part = part;
  };
  if (mode === "diloco") {
    const diloco = new DiLoCo(carrier, parameters, { innerSteps, lastStep, wire, signal });
    await diloco.begin();
    return { ...alone, hooks: { diloco }, begin, signal: diloco.signal };
  }
  const agreed = mode === "auto" ? await agreedMode(carrier, runtime.label) : mode;
  const gradients = new GradientExchange(carrier, {
    ...{ mode: agreed, wire, signal },
    ...(powerSgd !== undefined && { compress: { powerSgd: { rank: powerSgd } } }),
  });
  await gradients.begin(parameters);
  const complete = (): Promise<void> => gradients.complete();
  return {
    shard(groups) {
      const shards = gradients.shard(
        runtime,
        groups.map(({ params }) => params),
      );
      return groups.map((group, i) => ({ ...group, params: shards[i] as FlatVariables }));
    },
    hooks: {
      gradients: {
        beforeSave: complete,
        // A rank that ends makes its launcher end the others, of which one may still save.
        afterSave: () => carrier.barrier({ label: "a checkpoint" }),
        ...(powerSgd !== undefined && {
          stateDict: () => gradients.stateDict(),
          loadStateDict: (state: CompressionState) => gradients.loadStateDict(state),
        }),
      },
    },
    reduce: (optimizer, { weight, scaler }) =>
      gradients.reduce(optimizer, { weight, gradScale: scaler?.gradScale() }),
    ...{ complete, begin, signal: gradients.signal, store: alone.store },
  };
}
