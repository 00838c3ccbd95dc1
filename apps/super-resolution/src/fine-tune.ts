import type { Device } from "@halfstep/device";
import { GradScaler } from "@halfstep/grad-scaler";
import { applyRecipe } from "@halfstep/nn";
import { AdamW, clipGradNorm, cosine, type ParameterStorage } from "@halfstep/optim";
import { ampPrimitives, flattenByDType, l1Loss, type Runtime, type Tensor } from "@halfstep/tensor";
import {
  evaluateEvery,
  parameterSha256,
  type RunSummary,
  recipeFor,
  type Stateful,
  scalerOptionsFor,
  storageFor,
  type TestResult,
  type TrainingCheckpoints,
  type TrainingHook,
  type TrainingPrecision,
  train,
} from "@halfstep/trainer";
import type { ShrinkKernel } from "./images.js";
import { type Judgement, judge } from "./judge.js";
import type { LayersModel } from "./keras/layers-model.js";
import { type Pairs, type Pictures, randomPairs } from "./pairs.js";
import { upscalerOf } from "./upscale.js";

/** One fine-tuning. */
export interface FineTuning {
  readonly runtime: Runtime;
  readonly device: Device | undefined;
  /** What training starts from, and changes. */
  readonly model: LayersModel;
  readonly precision: TrainingPrecision;
  readonly pictures: Pictures;
  /** How pictures are made smaller. */
  readonly kernel: ShrinkKernel;
  /** Pixels of a crop, before it is made smaller, in a row and in a column. */
  readonly crop: number;
  readonly batchSize: number;
  /** Steps that an epoch has: there is no end of random crops. */
  readonly stepsPerEpoch: number;
  readonly maxSteps: number;
  readonly lr: number;
  readonly evalEvery: number;
  readonly seed: number;
  readonly initScale?: number | undefined;
  readonly staticLossScale?: number | undefined;
  /** How parameters are kept, for studies of what is lost. Default: as the precision has it. */
  readonly storage?: ParameterStorage | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly checkpoints?: FineTuningCheckpoints | undefined;
  readonly hooks?: Readonly<Record<string, TrainingHook>> | undefined;
}

interface FineTuningCheckpoints extends Omit<TrainingCheckpoints, "parts"> {
  readonly parts: Readonly<Record<string, Stateful>>;
}

/** The result of a fine-tuning, on the pictures to judge by, in dB. */
export interface FineTuningSummary extends RunSummary {
  readonly test: TestResult & { readonly psnr: number; readonly before: number };
}

/** Trains the network further. Undefined if the signal stopped it. */
export async function fineTune(run: FineTuning): Promise<FineTuningSummary | undefined> {
  const { runtime, device, model, pictures } = run;
  const started = performance.now();
  device?.memory.resetPeak();
  const recipe = recipeFor(run.precision);
  applyRecipe(model, recipe);
  const upscaler = upscalerOf(runtime, device, model, recipe);
  const score = (): Promise<Judgement> => judge(upscaler, model, pictures.test, run);
  const before = await score();

  const groups = flattenByDType(model.parameters());
  const schedule = cosine({ lr: run.lr, totalSteps: run.maxSteps });
  const optimizer = new AdamW(
    runtime.target,
    groups.map((params) => ({ params })),
    { lr: schedule, weightDecay: 0, storage: run.storage ?? storageFor(recipe) },
  );
  const scaler = new GradScaler(ampPrimitives(runtime), {
    ...scalerOptionsFor(recipe),
    ...(run.initScale !== undefined && { initScale: run.initScale }),
    ...(run.staticLossScale !== undefined && { preset: "static", initScale: run.staticLossScale }),
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
    checkpoints: run.checkpoints && {
      ...run.checkpoints,
      parts: { ...run.checkpoints.parts, model, optimizer },
    },
  });
  if (result.isAborted || run.signal?.aborted) return undefined;

  const peakBytes = device?.memory.peak;
  const after = await score();
  const bytesOf = (which: "values" | "gradients"): number =>
    groups.reduce((sum, group) => sum + group[which].byteLength, 0);
  const parameterBytes = bytesOf("values");
  // AdamW keeps two float32 moments for each parameter.
  const optimizerBytes = 2 * bytesOf("gradients");
  return {
    precision: recipe.name,
    steps: result.steps,
    appliedSteps: result.appliedSteps,
    skippedSteps: result.skippedSteps,
    finalScale: result.finalScale,
    test: {
      psnr: after.network,
      before: before.network,
      interpolation: after.interpolation,
      // Mean squared error, pixels from 0 to 1.
      loss: 10 ** (-after.network / 10),
    },
    msPerStep: result.msPerStep,
    samplesPerSecond: result.msPerStep === 0 ? 0 : (run.batchSize * 1000) / result.msPerStep,
    peakBytes:
      peakBytes ?? result.stepBytes + parameterBytes + bytesOf("gradients") + optimizerBytes,
    activationBytes: result.activationBytes,
    parameterBytes,
    optimizerBytes,
    perStep: result.perStep,
    parameterSha256: await parameterSha256(model.namedParameters()),
    wallSeconds: (performance.now() - started) / 1000,
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
