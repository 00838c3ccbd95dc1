import { GradScaler } from "@halfstep/grad-scaler";
import { applyRecipe } from "@halfstep/nn";
import { AdamW, clipGradNorm, cosine, type ParameterStorage } from "@halfstep/optim";
import { ampPrimitives, flattenByDType, l1Loss, type Runtime, type Tensor } from "@halfstep/tensor";
import {
  evaluateEvery,
  type RunContext,
  type RunSummary,
  recipeFor,
  runSummary,
  scalerOptionsFor,
  storageFor,
  type TestResult,
  type TrainingPrecision,
  train,
  withParts,
} from "@halfstep/trainer";
import type { ShrinkKernel } from "./images.js";
import { type Judgement, judge } from "./judge.js";
import type { LayersModel } from "./keras/layers-model.js";
import { type Pairs, type Pictures, randomPairs } from "./pairs.js";
import { savedLayers } from "./saved-model.js";
import { upscalerOf } from "./upscale.js";

/** One fine-tuning. */
export interface FineTuning extends RunContext {
  /** The model, which training changes. */
  readonly model: LayersModel;
  readonly precision: TrainingPrecision;
  readonly pictures: Pictures;
  /** The kernel for shrinking pictures. */
  readonly kernel: ShrinkKernel;
  /** Pixels on each side of a crop, before it is shrunk. */
  readonly crop: number;
  readonly batchSize: number;
  /** Steps of an epoch, because random crops are unlimited. */
  readonly stepsPerEpoch: number;
  readonly maxSteps: number;
  readonly lr: number;
  readonly evalEvery: number;
  readonly seed: number;
  readonly initScale?: number | undefined;
  readonly staticLossScale?: number | undefined;
  /** The storage of parameters, for studies of losses. Default: that of the precision. */
  readonly storage?: ParameterStorage | undefined;
}

/** The result of a fine-tuning on the evaluation pictures, in dB. */
export interface FineTuningSummary extends RunSummary {
  readonly test: TestResult & { readonly psnr: number; readonly before: number };
}

/** Steps in which the learning rate rises. */
const warmUp = 20;

/** Trains the network further. Undefined if the signal stopped it. */
export async function fineTune(run: FineTuning): Promise<FineTuningSummary | undefined> {
  const { runtime, device, model, pictures } = run;
  const startedAt = performance.now();
  device?.memory.resetPeak();
  const recipe = recipeFor(run.precision);
  applyRecipe(model, recipe);
  const upscaler = upscalerOf(runtime, device, model, recipe);
  const score = (): Promise<Judgement> => judge(upscaler, model, pictures.test, run);
  const before = await score();

  const groups = flattenByDType(model.parameters());
  const schedule = cosine({
    lr: run.lr,
    // Adam's first steps have the full length of its rate in any direction, and would destroy the pretrained
    // parameters.
    warmupSteps: Math.min(warmUp, run.maxSteps - 1),
    totalSteps: run.maxSteps,
  });
  const optimizer = new AdamW(
    runtime.target,
    groups.map((params) => ({ params })),
    { lr: schedule, weightDecay: 0, storage: run.storage ?? storageFor(recipe) },
  );
  const scaler = new GradScaler(ampPrimitives(runtime), {
    ...scalerOptionsFor(recipe, run),
    // The loop drains outcomes itself, with the losses.
    outcomeSchedule: false,
  });
  const pairs = {
    ...run,
    pictures: pictures.train,
    scale: model.scale,
    batches: run.stepsPerEpoch,
  };
  const result = await train<Pairs>({
    runtime,
    device,
    precision: recipe,
    optimizer,
    scaler,
    epochs: Number.POSITIVE_INFINITY,
    maxSteps: run.maxSteps,
    batches: (epoch) => randomPairs(pairs, epoch),
    batchesFrom: (epoch, first) => randomPairs(pairs, epoch, first),
    loss: (batch) => meanDifference(runtime, model, batch),
    clip: () => clipGradNorm(optimizer, 1),
    lr: schedule,
    signal: run.signal,
    hooks: {
      ...run.hooks,
      evaluation: evaluateEvery({
        every: { steps: run.evalEvery },
        evaluate: score,
        score: ({ network }) => network,
        mode: "max",
        values: ({ network }) => ({ psnr: network }),
      }),
    },
    checkpoints: withParts(run.checkpoints, { model, optimizer, layers: savedLayers(model) }),
  });
  if (result.isAborted || run.signal?.aborted) return undefined;

  const peakBytes = device?.memory.peak;
  const after = await score();
  const test = {
    psnr: after.network,
    before: before.network,
    interpolation: after.interpolation,
    // Mean squared error, pixels from 0 to 1.
    loss: 10 ** (-after.network / 10),
  };
  return {
    ...(await runSummary({
      ...{ precision: recipe, result, test, model, groups, peakBytes, startedAt },
      // AdamW's.
      moments: 2,
      samplesPerStep: run.batchSize,
    })),
    test,
  };
}

/** Mean absolute difference (Lim et al. 2017), of pixels from 0 to 1. */
function meanDifference(
  runtime: Runtime,
  model: LayersModel,
  { small, large, count, size }: Pairs,
): Tensor {
  const side = size / model.scale;
  const enlarged = model.forward(runtime.tensor(small, [count, side, side, 3]));
  return l1Loss(enlarged, runtime.tensor(large, [count, size, size, 3])).mul(1 / 255);
}
