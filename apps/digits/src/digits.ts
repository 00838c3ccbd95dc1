import {
  gatherImages,
  gatherLabels,
  type ImageSet,
  mnistNormalization,
  batches as orderedBatches,
  permutation,
  stratifiedSample,
} from "@halfstep/data";
import { GradScaler } from "@halfstep/grad-scaler";
import { DigitsCnn } from "@halfstep/models";
import { AdamW, oneCycle } from "@halfstep/optim";
import { ampPrimitives, crossEntropy, flattenByDType } from "@halfstep/tensor";
import {
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

  const { height, width } = run.train;
  const logits = ({ images, labels }: Batch) =>
    model.forward(runtime.tensor(images, [labels.length, height, width, 1]));
  const result = await train<Batch>({
    runtime,
    device,
    precision,
    optimizer,
    scaler,
    epochs: run.epochs,
    batches: (epoch) => shuffled(run, epoch),
    batchesFrom: (epoch, first) => shuffled(run, epoch, first),
    loss: (batch) => crossEntropy(logits(batch), runtime.tensor(batch.labels)),
    lr: schedule,
    signal: run.signal,
    hooks: run.hooks,
    checkpoints: withParts(run.checkpoints, { model, optimizer }),
  });
  if (result.isAborted || run.signal?.aborted) return undefined;

  const peakBytes = device?.memory.peak;
  model.eval();
  const test = await evaluate<Batch>({
    runtime,
    precision,
    logits,
    labels: ({ labels }) => labels,
    batches: inOrder(run),
    onCompile(progress) {
      for (const hook of Object.values(run.hooks ?? {})) hook.onCompile?.(progress);
    },
    onBatch: (_, predictions) => run.onTested?.(predictions),
    signal: run.signal,
  });
  if (run.signal?.aborted) return undefined;
  return runSummary({
    ...{ precision, result, test: { accuracy: test.accuracy, loss: test.loss }, model, groups },
    moments: 2,
    samplesPerStep: Math.min(run.batchSize, run.train.count),
    ...{ peakBytes, startedAt: started },
  });
}

function* shuffled(
  { train: set, batchSize, seed }: DigitsRun,
  epoch: number,
  first = 0,
): Generator<Batch> {
  const order = permutation(set.count, seed, epoch);
  for (let start = first * batchSize; start < set.count; start += batchSize)
    yield batchOf(set, order.subarray(start, start + batchSize));
}

function* inOrder({ test: set }: DigitsRun): Generator<Batch> {
  for (const indices of orderedBatches({ count: set.count, batchSize: testBatch }))
    yield batchOf(set, indices);
}

const batchOf = (set: ImageSet, indices: Uint32Array): Batch => ({
  images: gatherImages(set, indices, mnistNormalization),
  labels: gatherLabels(set, indices),
});

/** At most `limit` images of a set, with the digits in proportion; the seed decides which ones. */
export function sampleOf(set: ImageSet, limit: number | undefined, seed: number): ImageSet {
  if (limit === undefined || limit >= set.count) return set;
  const places = stratifiedSample(set.labels, limit, seed);
  const bytes = set.height * set.width;
  const images = new Uint8Array(places.length * bytes);
  for (const [i, place] of places.entries())
    images.set(set.images.subarray(place * bytes, (place + 1) * bytes), i * bytes);
  const labels = Uint8Array.from(places, (place) => set.labels[place] as number);
  return { ...set, count: places.length, images, labels };
}

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
