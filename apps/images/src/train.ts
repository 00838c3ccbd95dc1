import { permutation, shareOf } from "@halfstep/data";
import type { Wire } from "@halfstep/distributed";
import { GradScaler } from "@halfstep/grad-scaler";
import type { ResNet } from "@halfstep/models";
import { applyRecipe } from "@halfstep/nn";
import { imagenet, type Schedule, SGD } from "@halfstep/optim";
import {
  ampPrimitives,
  crossEntropy,
  type FlatVariables,
  flattenByDType,
  type Variable,
} from "@halfstep/tensor";
import {
  type BatchShare,
  type ExchangeMode,
  evaluateEvery,
  jobExchange,
  labelSetLoss,
  type RunContext,
  type RunSummary,
  runSummary,
  storageFor,
  type TestResult,
  train,
  withParts,
} from "@halfstep/trainer";
import { randomOf } from "./augment.js";
import type { TrainingData } from "./data.js";
import { logitsOf, scoreImages, type Tested } from "./evaluate.js";
import { type Batch, batchesOf, type Images } from "./images.js";
import { scoreLabelSets } from "./label-sets.js";
import { type NetworkOptions, networkOf } from "./model.js";
import type { ChosenPrecision } from "./precision.js";
import { savedNetwork } from "./saved-network.js";

/** One training run. */
export interface ImagesRun
  extends RunContext,
    Pick<ChosenPrecision, "recipe" | "scaler">,
    Pick<TrainingData, "view" | "train" | "test" | "isAugmented"> {
  readonly network: NetworkOptions;
  readonly epochs: number;
  readonly maxSteps?: number | undefined;
  /** Images in a batch of each process. */
  readonly batchSize: number;
  readonly accumulate: number;
  /** Learning rate for 256 images in a step; it is proportional to their number. */
  readonly lr: number;
  readonly momentum: number;
  readonly weightDecay: number;
  /** Whether batch norm and biases decay too, as in apex's script. */
  readonly normDecay: boolean;
  /** How the processes of a job work together, and the steps between two exchanges by DiLoCo. Default: gradients of every step. */
  readonly exchange?: ExchangeMode | undefined;
  readonly wire?: Wire | undefined;
  readonly innerSteps?: number | undefined;
  /** Columns of the factors in place of the gradients of matrices. Default: whole gradients. */
  readonly powerSgd?: number | undefined;
  /** Whether batch norms normalise by the batch of all processes. Default false. */
  readonly syncBatchNorm?: boolean | undefined;
  /** Number of epochs in which the learning rate rises. */
  readonly warmUp: number;
  /** Epochs at which it becomes a tenth. */
  readonly milestones: readonly number[];
  readonly labelSmoothing: number;
  /** The weight of each class in the loss. Default: 1. */
  readonly classWeights?: Float32Array | undefined;
  readonly seed: number;
  /** Images that are decoded at a time. */
  readonly workers: number;
  /** Epochs between two evaluations. */
  readonly evalEvery: number;
  /** Factor of the loss, for studies of underflow. Default 1. */
  readonly lossWeight?: number | undefined;
  /** Called with the new network before its optimizer is made, to load weights. */
  readonly prepare?: ((model: ResNet) => unknown) | undefined;
}

/** The result of a run, with the score of each class. */
export type ImagesResult = Tested & {
  readonly summary: RunSummary;
};

/** The sizes that make an epoch. */
type Sizes = Pick<ImagesRun, "train" | "batchSize" | "accumulate" | "job">;

/** Images in a batch of all processes together. */
const globalBatchSize = ({ batchSize, job }: Pick<ImagesRun, "batchSize" | "job">): number =>
  batchSize * (job?.ranks ?? 1);

/** Images in the batch from which a gradient is computed. */
const imagesOfGradient = (run: ImagesRun): number =>
  globalBatchSize(run) / (run.exchange === "diloco" ? (run.job?.size ?? 1) : 1);

/** Images in a step of all processes together. */
export const samplesPerStep = (run: Sizes): number =>
  Math.min(globalBatchSize(run) * run.accumulate, run.train.count);

/** Steps of an epoch. */
const stepsPerEpoch = (run: Sizes): number =>
  Math.ceil(Math.ceil(run.train.count / globalBatchSize(run)) / run.accumulate);

/** Steps of a run. */
export const stepsOf = (run: Sizes & Pick<ImagesRun, "epochs" | "maxSteps">): number =>
  Math.min(run.maxSteps ?? Number.POSITIVE_INFINITY, stepsPerEpoch(run) * run.epochs);

/**
 * The learning rates of apex's script: for 256 images in a step, in proportion for more or fewer; warmed up, and divided by ten. With
 * DiLoCo a process steps along the gradients of its own images.
 */
export const scheduleOf = (run: ImagesRun): Schedule =>
  imagenet({
    lr: (run.lr * imagesOfGradient(run) * run.accumulate) / 256,
    stepsPerEpoch: stepsPerEpoch(run),
    warmupEpochs: run.warmUp,
    milestones: run.milestones,
  });

/** Trains a ResNet, and tests it. Undefined if the signal stopped it. */
export async function trainImages(run: ImagesRun): Promise<ImagesResult | undefined> {
  const { runtime, device, recipe, view } = run;
  const startedAt = performance.now();
  device?.memory.resetPeak();
  const model = networkOf(runtime, run.network, run.seed);
  run.prepare?.(model);
  applyRecipe(model, recipe);
  const groups = parameterGroups(model, run);
  const schedule = scheduleOf(run);
  const exchange = await jobExchange(run.job, {
    ...{ mode: run.exchange, wire: run.wire, powerSgd: run.powerSgd },
    ...{ innerSteps: run.innerSteps, lastStep: stepsOf(run) },
    ...{ runtime, signal: run.signal, parameters: model.parameters() },
    ...(run.syncBatchNorm && { synchronized: model }),
  });
  const optimizer = new SGD(runtime.target, exchange.shard(groups), {
    lr: schedule,
    momentum: run.momentum,
    storage: storageFor(recipe),
  });
  // The loop drains outcomes itself, with the losses.
  const scaler = new GradScaler(ampPrimitives(runtime), { ...run.scaler, outcomeSchedule: false });

  const judged = { runtime, precision: recipe, model };
  const score = async (signal?: AbortSignal): Promise<Tested> => {
    await exchange.complete();
    const scored = view.multiLabel ? scoreLabelSets : scoreImages;
    return scored({ ...judged, batches: testBatches(run), classes: view.classes, signal });
  };
  let last: { readonly step: number; readonly result: Tested } | undefined;

  const result = await train<TrainingBatch>({
    runtime,
    device,
    precision: recipe,
    optimizer,
    scaler,
    epochs: run.epochs,
    maxSteps: run.maxSteps,
    accumulate: run.accumulate,
    samples: ({ share }) => share.weight,
    batches: (epoch) => trainingBatches(run, epoch),
    batchesFrom: (epoch, first) => trainingBatches(run, epoch, first),
    loss(batch) {
      exchange.begin(batch.share);
      const logits = logitsOf(judged, batch);
      const { labelSmoothing, classWeights } = run;
      const options = {
        labelSmoothing,
        ...(classWeights && { weight: runtime.tensor(classWeights) }),
      };
      const loss = batch.flags
        ? labelSetLoss(logits, runtime.tensor(batch.flags, logits.shape), options)
        : crossEntropy(logits, runtime.tensor(batch.labels), options);
      return run.lossWeight === undefined ? loss : loss.mul(run.lossWeight);
    },
    reduce: (batches) =>
      exchange.reduce?.(optimizer, {
        weight: batches.reduce((images, { share }) => images + share.weight, 0),
        scaler,
      }),
    lr: schedule,
    signal: exchange.signal,
    hooks: {
      ...exchange.hooks,
      ...run.hooks,
      evaluation: evaluateEvery({
        every: { epochs: run.evalEvery },
        model,
        evaluate: () => score(),
        score: ({ score: each }) => ("classes" in each ? each.accuracy : each.microF1),
        mode: "max",
        onResult(evaluation, { step }) {
          last = { step, result: evaluation };
        },
        values: (evaluation) => metricsOf(evaluation.score),
      }),
    },
    checkpoints: withParts(run.checkpoints, {
      ...{ model, optimizer },
      network: savedNetwork({ network: run.network, view, recipe }),
    }),
  });
  if (result.isAborted || run.signal?.aborted) return undefined;

  const peakBytes = device?.memory.peak;
  model.eval();
  const test = last?.step === result.steps ? last.result : await score(run.signal);
  if (run.signal?.aborted) return undefined;
  return {
    ...test,
    summary: await runSummary({
      ...{ precision: recipe, result, model, peakBytes, startedAt },
      ...{ groups: groups.map(({ params }) => params), moments: run.momentum > 0 ? 1 : 0 },
      samplesPerStep: samplesPerStep(run),
      test: metricsOf(test.score),
    }),
  };
}

const metricsOf = (score: Tested["score"]): TestResult => {
  if ("classes" in score) {
    const { accuracy, top5Accuracy, loss } = score;
    return { accuracy, ...(top5Accuracy !== undefined && { top5Accuracy }), loss };
  }
  const { microF1, macroF1, exactMatch, loss } = score;
  return { microF1, macroF1, exactMatch, loss };
};

interface TrainingBatch extends Batch {
  readonly share: BatchShare;
}

/** The share of this process in the batches of an epoch from number `first` on, augmented by this epoch's random numbers. */
async function* trainingBatches(
  run: ImagesRun,
  epoch: number,
  first = 0,
): AsyncGenerator<TrainingBatch> {
  const { train: images, seed, workers, isAugmented } = run;
  const { rank, size } = run.job ?? { rank: 0, size: 1 };
  const order = permutation(images.count, seed, epoch);
  const batches = chunks(order, globalBatchSize(run), first * globalBatchSize(run));
  const shares = batches.map((batch) => shareOf(batch, rank, size));
  const places = shares.map(({ samples }) => samples);
  const randomFor = (image: number) => randomOf(seed, epoch, image);
  let index = 0;
  for await (const batch of batchesOf(images, places, workers, isAugmented ? randomFor : undefined))
    yield { ...batch, share: shares[index++] as BatchShare };
}

/** All test images in their order. */
export const testBatches = ({
  test,
  batchSize,
  workers,
}: {
  readonly test: Images;
  readonly batchSize: number;
  readonly workers: number;
}): AsyncGenerator<Batch> => {
  const order = Uint32Array.from({ length: test.count }, (_, i) => i);
  return batchesOf(test, chunks(order, 2 * batchSize, 0), workers);
};

const chunks = (order: Uint32Array, size: number, from: number): readonly Uint32Array[] =>
  Array.from({ length: Math.ceil((order.length - from) / size) }, (_, i) =>
    order.subarray(from + i * size, from + (i + 1) * size),
  );

type Group = { readonly params: FlatVariables; readonly weightDecay: number };

/** All parameters decay, or all but those of batch norm and biases. */
function parameterGroups(
  model: ResNet,
  { weightDecay, normDecay }: Pick<ImagesRun, "weightDecay" | "normDecay">,
): readonly Group[] {
  const groups = (isWanted: (variable: Variable) => boolean, decay: number): Group[] =>
    flattenByDType([...model.parameters()].filter(isWanted)).map((params) => ({
      ...{ params, weightDecay: decay },
    }));
  if (normDecay) return groups(() => true, weightDecay);
  return [...groups(({ rank }) => rank > 1, weightDecay), ...groups(({ rank }) => rank <= 1, 0)];
}
