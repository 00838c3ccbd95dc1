import { shareOf } from "@halfstep/data";
import { GradScaler, type GradScalerOptions } from "@halfstep/grad-scaler";
import { applyRecipe, type Lora, type Module } from "@halfstep/nn";
import { warmupLinear } from "@halfstep/optim";
import { ampPrimitives } from "@halfstep/tensor";
import {
  type AdapterSettings,
  adaptersFor,
  type BatchShare,
  type JobExchangeOptions,
  jobExchange,
  type RunContext,
  type RunSummary,
  recipeFor,
  runSummary,
  savedGenerator,
  scalerOptionsFor,
  storageFor,
  type TrainingPrecision,
  train,
  withParts,
} from "@halfstep/trainer";
import { fastGradient } from "./adversary.js";
import { longestOf, shuffledByLength } from "./batches.js";
import type { TestMetrics } from "./label-metrics.js";
import { type Learner, lossOf } from "./learner.js";
import { bertOptimizer } from "./optimizer.js";
import { scoreOf } from "./score.js";
import type { Encoded } from "./tokenizer.js";

/** The training settings of a model. */
export interface TrainingSettings {
  readonly precision: TrainingPrecision;
  readonly epochs: number;
  /** Ends training after so many steps. */
  readonly maxSteps?: number | undefined;
  /** Texts in a batch of each process. */
  readonly batchSize: number;
  /** Batches that make one step. */
  readonly accumulate: number;
  readonly lr: number;
  /** Part of the steps in which the rate rises. */
  readonly warmup: number;
  readonly layerDecay: number;
  /** Length of adversarial perturbations of the word embeddings; 0 for none. */
  readonly adversarial: number;
  readonly seed: number;
  /** A fixed loss scale, instead of the precision's own. */
  readonly staticLossScale?: number | undefined;
  /** The initial value of a dynamic loss scale. */
  readonly initScale?: number | undefined;
  /** How the processes of a job work together, and the steps between two exchanges by DiLoCo. Default: gradients of every step. */
  readonly exchange?: JobExchangeOptions["mode"];
  readonly wire?: JobExchangeOptions["wire"];
  readonly innerSteps?: number | undefined;
  /** Columns of the factors in place of the gradients of matrices. Default: whole gradients. */
  readonly powerSgd?: number | undefined;
}

export interface TextRun<Example extends Encoded>
  extends TrainingSettings,
    RunContext,
    Partial<AdapterSettings> {
  readonly learner: Learner<Example>;
  /** The training examples of an epoch, the same number in each epoch. */
  readonly train: (epoch: number) => readonly Example[];
  /** Counts the test, for figures besides the accuracy. */
  readonly metrics?: TestMetrics | undefined;
  /** Texts, each in the windows that the model reads one by one. */
  readonly test: readonly (readonly Example[])[];
  /** Default true. Without, accuracy and loss are NaN. */
  readonly isTested?: boolean;
  /** Names in torch of parameters that no other model has trained. */
  readonly fresh?: readonly string[] | undefined;
  /** Called with the adapters after the test, before they are merged into the model. */
  readonly onAdapters?: ((lora: Lora) => Promise<void>) | undefined;
}

interface Batch<Example> {
  /** Those of this process. */
  readonly examples: readonly Example[];
  readonly share: BatchShare;
  /** The length of the longest text of all processes. */
  readonly length: number;
  /**
   * Whether the word embeddings are perturbed in the direction that is worst by the gradients of the previous batch.
   */
  readonly isAdversarial: boolean;
}

/** The settings of a run, in a job or alone. */
type Sized = TrainingSettings & Pick<RunContext, "job">;

/** Texts in a batch of all processes together. */
const globalBatchSize = ({ batchSize, job }: Pick<Sized, "batchSize" | "job">): number =>
  batchSize * (job?.ranks ?? 1);

/** Texts in a step of all processes together. */
export const samplesPerStep = (run: Pick<Sized, "batchSize" | "accumulate" | "job">): number =>
  globalBatchSize(run) * run.accumulate;

/** Steps of a run. */
export function stepsOf(examples: number, run: Sized): number {
  const { accumulate, epochs, maxSteps = Number.POSITIVE_INFINITY } = run;
  const batches = Math.ceil(examples / globalBatchSize(run));
  return Math.min(maxSteps, Math.ceil(batches / accumulate) * epochs);
}

/** Trains a model, and tests it. Undefined if the signal stopped it. */
export async function trainText<Example extends Encoded>(
  run: TextRun<Example>,
): Promise<RunSummary | undefined> {
  const { runtime, device, learner, signal, seed, adversarial } = run;
  const { rank, size } = run.job ?? { rank: 0, size: 1 };
  const { model } = learner;
  const startedAt = performance.now();
  device?.memory.resetPeak();
  const recipe = recipeFor(run.precision);
  applyRecipe(model, recipe);
  const lora = adaptersFor(
    model,
    { loraTargets: ["query", "value"], ...run },
    { recipe, seed, trained: newModules(model, run.fresh) },
  );
  const steps = stepsOf(run.train(0).length, run);
  const exchange = await jobExchange(run.job, {
    ...{ mode: run.exchange, wire: run.wire, powerSgd: run.powerSgd },
    ...{ innerSteps: run.innerSteps, lastStep: steps },
    ...{
      runtime,
      signal: run.signal,
      parameters: (lora ?? model).parameters(),
      generator: model.bert.generator,
    },
  });
  const { optimizer, groups } = bertOptimizer(runtime, model, {
    ...run,
    ...{ steps, trained: lora, storage: storageFor(recipe), shard: exchange.shard },
  });
  const batches = (epoch: number): readonly Batch<Example>[] =>
    shuffledByLength(run.train(epoch), {
      ...{ batchSize: globalBatchSize(run), seed, epoch },
    }).flatMap((all) => {
      const { samples: examples, ...share } = shareOf(all, rank, size);
      const batch = { examples, share, length: longestOf(all), isAdversarial: false };
      return adversarial > 0 ? [batch, { ...batch, isAdversarial: true }] : [batch];
    });
  /** Of a process that only repeats a text of another: 0. */
  const weightOf = ({ examples, share }: Batch<Example>): number =>
    share.weight > 0 ? learner.weightOf(examples) : 0;
  const scaler = new GradScaler(ampPrimitives(runtime), scalerOptions(run));
  const words = model.bert.embeddings.wordEmbeddings.weight;
  const result = await train<Batch<Example>>({
    runtime,
    device,
    precision: recipe,
    optimizer,
    scaler,
    epochs: run.epochs,
    maxSteps: run.maxSteps,
    // The clean and the adversarial pass of a batch are two micro-steps of one step.
    accumulate: (adversarial > 0 ? 2 : 1) * run.accumulate,
    samples: weightOf,
    batches,
    batchesFrom: (epoch, first) => batches(epoch).slice(first),
    loss({ examples, share, length, isAdversarial }) {
      exchange.begin(share);
      const perturbation = isAdversarial ? fastGradient(words, adversarial) : undefined;
      return lossOf(learner, examples, { perturbation, length });
    },
    reduce: (micro) =>
      exchange.reduce?.(optimizer, {
        weight: micro.reduce((sum, batch) => sum + weightOf(batch), 0),
        scaler,
      }),
    lr: warmupLinear({ lr: run.lr, warmup: run.warmup, totalSteps: steps }),
    signal: exchange.signal,
    hooks: { ...exchange.hooks, ...run.hooks },
    checkpoints: withParts(run.checkpoints, {
      ...{ model, optimizer, dropout: savedGenerator(model.bert.generator) },
      ...(lora && { lora }),
    }),
  });
  if (result.isAborted || signal?.aborted) return undefined;

  const peakBytes = device?.memory.peak;
  await exchange.complete();
  model.eval();
  const { metrics } = run;
  const test =
    run.isTested === false
      ? undefined
      : { ...(await scoreOf(learner, run.test, { signal, metrics })), ...metrics?.figures() };
  if (signal?.aborted) return undefined;
  const summary = await runSummary({
    ...{ precision: recipe, result, test, model: lora ?? model, groups, startedAt, peakBytes },
    // BertAdam's two.
    moments: 2,
    samplesPerStep: samplesPerStep(run),
  });
  if (lora) {
    await run.onAdapters?.(lora);
    // Sums with adapters are not rounded to the dtype of frozen layers.
    model.float();
    lora.merge();
  }
  return summary;
}

/** The modules that adapters do not suffice for, and that are trained whole: heads, and a pooler that is new. */
function newModules(model: Module, fresh: readonly string[] = []): readonly string[] {
  const fields = [...model.namedParameters()].map(([path]) => path.split(".")[0] as string);
  const heads = fields.filter((name) => name !== "bert");
  const hasNewPooler = fresh.some((name) => name.startsWith("bert.pooler."));
  return [...new Set([...heads, ...(hasNewPooler ? ["bert.pooler"] : [])])];
}

function scalerOptions({ precision, ...flags }: TrainingSettings): GradScalerOptions {
  return {
    ...scalerOptionsFor(recipeFor(precision), flags),
    // The loop reads outcomes itself, together with the losses.
    outcomeSchedule: false,
  };
}
