import { GradScaler, type GradScalerOptions } from "@halfstep/grad-scaler";
import { applyRecipe, type Lora, type Module } from "@halfstep/nn";
import { warmupLinear } from "@halfstep/optim";
import { ampPrimitives } from "@halfstep/tensor";
import {
  type AdapterSettings,
  adaptersFor,
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
import { shuffledByLength } from "./batches.js";
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
  readonly test: readonly Example[];
  /** Default true. Without, accuracy and loss are NaN. */
  readonly isTested?: boolean;
  /** Names in torch of parameters that no other model has trained. */
  readonly fresh?: readonly string[] | undefined;
  /** Called with the adapters after the test, before they are merged into the model. */
  readonly onAdapters?: ((lora: Lora) => Promise<void>) | undefined;
}

interface Batch<Example> {
  readonly examples: readonly Example[];
  /**
   * Whether the word embeddings are perturbed in the direction that is worst by the gradients of the previous batch.
   */
  readonly isAdversarial: boolean;
}

/** Steps of a run. */
export const stepsOf = (
  examples: number,
  { batchSize, accumulate, epochs, maxSteps = Number.POSITIVE_INFINITY }: TrainingSettings,
): number => Math.min(maxSteps, Math.ceil(Math.ceil(examples / batchSize) / accumulate) * epochs);

/** Trains a model, and tests it. Undefined if the signal stopped it. */
export async function trainText<Example extends Encoded>(
  run: TextRun<Example>,
): Promise<RunSummary | undefined> {
  const { runtime, device, learner, signal, seed, batchSize, adversarial } = run;
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
  const { optimizer, groups } = bertOptimizer(runtime, model, {
    ...run,
    steps,
    trained: lora,
    storage: storageFor(recipe),
  });
  const batches = (epoch: number): readonly Batch<Example>[] =>
    shuffledByLength(run.train(epoch), { batchSize, seed, epoch }).flatMap((examples) => {
      const batch = { examples, isAdversarial: false };
      return adversarial > 0 ? [batch, { examples, isAdversarial: true }] : [batch];
    });
  const words = model.bert.embeddings.wordEmbeddings.weight;
  const result = await train<Batch<Example>>({
    runtime,
    device,
    precision: recipe,
    optimizer,
    scaler: new GradScaler(ampPrimitives(runtime), scalerOptions(run)),
    epochs: run.epochs,
    maxSteps: run.maxSteps,
    // The clean and the adversarial pass of a batch are two micro-steps of one step.
    accumulate: (adversarial > 0 ? 2 : 1) * run.accumulate,
    batches,
    batchesFrom: (epoch, first) => batches(epoch).slice(first),
    loss: ({ examples, isAdversarial }) =>
      lossOf(learner, examples, isAdversarial ? fastGradient(words, adversarial) : undefined),
    lr: warmupLinear({ lr: run.lr, warmup: run.warmup, totalSteps: steps }),
    signal,
    hooks: run.hooks,
    checkpoints: withParts(run.checkpoints, {
      ...{ model, optimizer, dropout: savedGenerator(model.bert.generator) },
      ...(lora && { lora }),
    }),
  });
  if (result.isAborted || signal?.aborted) return undefined;

  const peakBytes = device?.memory.peak;
  model.eval();
  const { metrics } = run;
  const test =
    run.isTested === false
      ? { accuracy: Number.NaN, loss: Number.NaN }
      : { ...(await scoreOf(learner, run.test, { signal, metrics })), ...metrics?.figures() };
  if (signal?.aborted) return undefined;
  const summary = await runSummary({
    ...{ precision: recipe, result, test, model: lora ?? model, groups, startedAt, peakBytes },
    // BertAdam's two.
    moments: 2,
    samplesPerStep: batchSize * run.accumulate,
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

function scalerOptions({
  precision,
  initScale,
  staticLossScale,
}: TrainingSettings): GradScalerOptions {
  return {
    ...scalerOptionsFor(recipeFor(precision)),
    ...(initScale !== undefined && { initScale }),
    ...(staticLossScale !== undefined && { preset: "static", initScale: staticLossScale }),
    // The loop reads outcomes itself, together with the losses.
    outcomeSchedule: false,
  };
}
