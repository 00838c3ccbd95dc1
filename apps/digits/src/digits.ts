import {
  gatherImages,
  gatherLabels,
  type ImageSet,
  mnistNormalization,
  batches as orderedBatches,
  permutation,
} from "@halfstep/data";
import { GradScaler } from "@halfstep/grad-scaler";
import { DigitsCnn } from "@halfstep/models";
import { AdamW, oneCycle } from "@halfstep/optim";
import { ampPrimitives, crossEntropy, flattenByDType, type Tensor } from "@halfstep/tensor";
import {
  type EvaluateOptions,
  type Evaluation,
  evaluate,
  type Precision,
  type RunContext,
  type RunSummary,
  recipeFor,
  runSummary,
  scalerOptionsFor,
  train,
  withParts,
} from "@halfstep/trainer";
import { imageSize } from "./data.js";

/** One training run. */
export interface DigitsRun extends RunContext {
  readonly precision: Precision;
  readonly train: ImageSet;
  readonly test: ImageSet;
  readonly epochs: number;
  readonly batchSize: number;
  readonly lr: number;
  readonly seed: number;
  readonly initScale: number;
  readonly staticLossScale?: number | undefined;
  /**
   * "bfloat16" keeps the weights in bfloat16 without float32 masters, and loses small updates: the control that shows what masters are
   * for. Default "float32".
   */
  readonly weights?: "float32" | "bfloat16";
  /** Called with the new network before its optimizer is made, to load weights. */
  readonly prepare?: ((model: DigitsCnn) => unknown) | undefined;
  /** The weight of each digit in the loss. Default: 1. */
  readonly classWeights?: Float32Array | undefined;
  /** Share of the target that is spread over all digits. Default: 0. */
  readonly labelSmoothing?: number;
  /** Called with the predicted digits of test images, batch by batch, in their order. */
  readonly onTested?: ((predictions: Uint32Array) => void) | undefined;
}

interface Batch {
  /** [n, height, width, 1], normalised */
  readonly images: Float32Array;
  readonly labels: Uint32Array;
}

const testBatch = 500;

/** Steps of a run. */
export const stepsOf = ({
  train: { count },
  batchSize,
  epochs,
}: Pick<DigitsRun, "train" | "batchSize" | "epochs">): number =>
  Math.ceil(count / batchSize) * epochs;

/** Trains the CNN once, and tests it. Undefined if the signal stopped it. */
export async function trainDigits(run: DigitsRun): Promise<RunSummary | undefined> {
  const { runtime, device, precision, seed } = run;
  const started = performance.now();
  device?.memory.resetPeak();
  const model = new DigitsCnn(runtime, { seed });
  run.prepare?.(model);
  if (run.weights === "bfloat16") model.bfloat16();
  const groups = flattenByDType(model.parameters());
  const schedule = oneCycle({ maxLr: run.lr, totalSteps: stepsOf(run) });
  const optimizer = new AdamW(
    runtime.target,
    groups.map((params) => ({ params })),
    { lr: schedule, storage: run.weights === "bfloat16" ? "plain" : "float32" },
  );
  const scaler = new GradScaler(ampPrimitives(runtime), {
    ...scalerOptionsFor(recipeFor(precision), run),
    // The loop drains outcomes itself, with the losses.
    outcomeSchedule: false,
  });

  const result = await train<Batch>({
    runtime,
    device,
    precision,
    optimizer,
    scaler,
    epochs: run.epochs,
    batches: (epoch) => shuffled(run, epoch),
    batchesFrom: (epoch, first) => shuffled(run, epoch, first),
    loss: (batch) => {
      const { labelSmoothing = 0, classWeights } = run;
      return crossEntropy(logitsOf(model, batch), runtime.tensor(batch.labels), {
        labelSmoothing,
        ...(classWeights && { weight: runtime.tensor(classWeights) }),
      });
    },
    lr: schedule,
    signal: run.signal,
    hooks: run.hooks,
    checkpoints: withParts(run.checkpoints, { model, optimizer }),
  });
  if (result.isAborted || run.signal?.aborted) return undefined;

  const peakBytes = device?.memory.peak;
  model.eval();
  const test = await testDigits({
    ...{ runtime, model, precision, test: run.test, signal: run.signal },
    onCompile(progress) {
      for (const hook of Object.values(run.hooks ?? {})) hook.onCompile?.(progress);
    },
    onTested: run.onTested,
  });
  if (run.signal?.aborted) return undefined;
  return runSummary({
    ...{ precision, result, test: { accuracy: test.accuracy, loss: test.loss }, model, groups },
    moments: 2,
    samplesPerStep: Math.min(run.batchSize, run.train.count),
    ...{ peakBytes, startedAt: started },
  });
}

/** A test of a network. */
interface DigitsTest
  extends Pick<DigitsRun, "runtime" | "precision" | "test" | "onTested" | "signal"> {
  /** In evaluation mode. */
  readonly model: DigitsCnn;
  readonly onCompile?: EvaluateOptions<Batch>["onCompile"];
}

/** Tests a network on all images of a set. */
export const testDigits = ({
  model,
  test,
  onTested,
  ...options
}: DigitsTest): Promise<Evaluation> =>
  evaluate<Batch>({
    ...options,
    logits: (batch) => logitsOf(model, batch),
    labels: ({ labels }) => labels,
    batches: inOrder(test),
    onBatch: (_, predictions) => onTested?.(predictions),
  });

/** Records the logits of a batch, [n, 10]. */
const logitsOf = (model: DigitsCnn, { images, labels }: Batch): Tensor =>
  model.forward(model.fc.weight.runtime.tensor(images, [labels.length, imageSize, imageSize, 1]));

function* shuffled(
  { train: set, batchSize, seed }: DigitsRun,
  epoch: number,
  first = 0,
): Generator<Batch> {
  const order = permutation(set.count, seed, epoch);
  for (let start = first * batchSize; start < set.count; start += batchSize)
    yield batchOf(set, order.subarray(start, start + batchSize));
}

function* inOrder(set: ImageSet): Generator<Batch> {
  for (const indices of orderedBatches({ count: set.count, batchSize: testBatch }))
    yield batchOf(set, indices);
}

const batchOf = (set: ImageSet, indices: Uint32Array): Batch => ({
  images: gatherImages(set, indices, mnistNormalization),
  labels: gatherLabels(set, indices),
});

/** The first images of a set, for studies on MNIST, whose images are in no order. */
export const firstOf = (set: ImageSet, limit: number | undefined): ImageSet => {
  const count = Math.min(set.count, limit ?? set.count);
  const pixels = set.height * set.width;
  return {
    ...set,
    count,
    images: set.images.subarray(0, count * pixels),
    labels: set.labels.subarray(0, count),
  };
};
