import { GradScaler } from "@halfstep/grad-scaler";
import type { UNet } from "@halfstep/models";
import { applyRecipe } from "@halfstep/nn";
import { AdamW, clipGradNorm, cosine, ReduceOnPlateau, RMSprop } from "@halfstep/optim";
import { ampPrimitives, flattenByDType, type Storage } from "@halfstep/tensor";
import {
  evaluateEvery,
  type RunContext,
  type RunSummary,
  recipeFor,
  runSummary,
  scalerOptionsFor,
  storageFor,
  type TrainingHook,
  type TrainingPrecision,
  train,
  withParts,
} from "@halfstep/trainer";
import { type Judged, type JudgedPixels, judge } from "./evaluate.js";
import { segmentationLoss } from "./loss.js";
import { makeUNet, type OpenedSegmenter, type Segmenter, savedSegmenter } from "./saved-model.js";
import type { SceneSet } from "./scene.js";
import { headline } from "./scores.js";
import { type Encoding, stepsPerEpoch, type Tiles, trainingTiles } from "./tiles.js";

/** The settings of a run. */
export interface SegmentationSettings {
  /** Channels of the first level. */
  readonly width: number;
  /** Enlarge by interpolation instead of transposed convolutions. */
  readonly bilinear: boolean;
  /** Height and width of the tiles. */
  readonly tile: number;
  readonly batchSize: number;
  readonly epochs: number;
  readonly maxSteps?: number | undefined;
  /** "rmsprop" is milesial's: momentum 0.999, weight decay 1e-8. */
  readonly optimizer: "adamw" | "rmsprop";
  readonly lr: number;
  /** "plateau" divides the rate by 10 when the dice of held-out scenes has not improved for 5 epochs. */
  readonly schedule: "cosine" | "plateau";
  /** Of AdamW. */
  readonly weightDecay: number;
  /** The largest norm of all gradients. */
  readonly clip: number;
  readonly seed: number;
  readonly initScale?: number | undefined;
  readonly staticLossScale?: number | undefined;
}

/** One training run. */
export interface SegmentationRun extends RunContext, SegmentationSettings {
  readonly precision: TrainingPrecision;
  readonly scenes: SceneSet;
  /** How the network takes bytes of pictures. Default: "logarithmic". */
  readonly encoding?: Encoding | undefined;
  /** Called with the new network before its optimizer is made, to load weights. */
  readonly prepare?: ((model: UNet) => unknown) | undefined;
  /** The weight of each class in the cross-entropy. Default: 1. */
  readonly classWeights?: Float32Array | undefined;
  /** Share of the target that the cross-entropy spreads over all classes. Default 0. */
  readonly labelSmoothing?: number | undefined;
  /**
   * Factor of the loss, for studies of underflow. It also multiplies Adam's eps and the largest norm, so that exact
   * arithmetic would give equal results. Default 1.
   */
  readonly lossWeight?: number | undefined;
  /** False for float16 without loss scaling, which studies show to fail. Default: as the precision has it. */
  readonly scaling?: boolean | undefined;
}

export interface Trained {
  readonly summary: RunSummary;
  /** The network after the last step, in evaluation mode. */
  readonly segmenter: Pick<OpenedSegmenter, "model" | keyof Segmenter>;
  /** On the held-out scenes. */
  readonly judged: JudgedPixels;
}

/** Trains a U-Net, and evaluates it on the held-out scenes after every epoch. Undefined if the signal stopped it. */
export async function trainUNet(run: SegmentationRun): Promise<Trained | undefined> {
  const { runtime, device, scenes, lossWeight = 1 } = run;
  const startedAt = performance.now();
  device?.memory.resetPeak();
  const recipe = recipeFor(run.precision);
  const { channels, classes, maskValues, ignoredValue, maskKind, palette, scale } = scenes;
  const { width, bilinear, tile, encoding } = run;
  const segmenter: Segmenter = {
    ...{ channels, classes, maskValues, maskKind, scale, width, bilinear, tile },
    ...(palette && { palette }),
    ...(ignoredValue !== undefined && { ignoredValue }),
    ...(encoding && { encoding }),
    precision: recipe.name,
  };
  const model = makeUNet(runtime, segmenter, run.seed);
  run.prepare?.(model);
  applyRecipe(model, recipe);
  const groups = flattenByDType(model.parameters());
  const scaler = new GradScaler(ampPrimitives(runtime), {
    ...(run.scaling === false ? { enabled: false } : scalerOptionsFor(recipe, run)),
    // The loop drains outcomes itself, with the losses.
    outcomeSchedule: false,
  });
  const totalSteps = stepsOf(run);
  const lr =
    run.schedule === "plateau"
      ? run.lr
      : cosine({
          lr: run.lr,
          minLr: run.lr / 100,
          warmupSteps: Math.min(20, totalSteps - 1),
          totalSteps,
        });
  const optimizer = makeOptimizer(run, lr, groups, storageFor(recipe));
  const plateau = run.schedule === "plateau" && plateauHook(optimizer.paramGroups);
  const judgeNow = (): Promise<JudgedPixels> =>
    judge({ ...run, classes, model, precision: recipe, scenes: scenes.heldOut });

  const result = await train<Tiles>({
    runtime,
    device,
    precision: recipe,
    optimizer,
    scaler,
    epochs: run.epochs,
    maxSteps: run.maxSteps,
    batches: (epoch) => trainingTiles(scenes, run, epoch),
    batchesFrom: (epoch, first) => trainingTiles(scenes, run, epoch, first),
    loss: ({ images, labels, shape }) => {
      const loss = segmentationLoss(
        model.forward(runtime.tensor(images, shape)),
        runtime.tensor(labels),
        {
          weight: run.classWeights && runtime.tensor(run.classWeights),
          labelSmoothing: run.labelSmoothing,
          ignores: ignoredValue !== undefined,
        },
      );
      return lossWeight === 1 ? loss : loss.mul(lossWeight);
    },
    // The loop unscales before it clips.
    clip: () => clipGradNorm(optimizer, run.clip * lossWeight),
    lr: (applied) => (typeof lr === "number" ? rateOf(optimizer.paramGroups) : lr(applied)),
    signal: run.signal,
    hooks: {
      ...run.hooks,
      ...(plateau && { plateau }),
      evaluation: evaluateEvery({
        every: { epochs: 1 },
        model,
        evaluate: judgeNow,
        score: (judged) => headline(classes, judged).value,
        mode: "max",
        values: (judged) => testOf(classes, judged),
      }),
    },
    checkpoints: withParts(run.checkpoints, {
      model,
      optimizer,
      segmenter: savedSegmenter(segmenter),
    }),
  });
  if (result.isAborted || run.signal?.aborted) return undefined;

  const peakBytes = device?.memory.peak;
  model.eval();
  const judged = await judgeNow();
  const summary = await runSummary({
    ...{ precision: recipe, result, test: testOf(classes, judged), model, groups, peakBytes },
    // AdamW's two, or RMSprop's mean square and momentum.
    ...{ moments: 2, samplesPerStep: run.batchSize, startedAt },
  });
  return { summary, segmenter: { ...segmenter, model }, judged };
}

/** Steps of a run. */
export const stepsOf = (
  run: Pick<SegmentationRun, "scenes" | "tile" | "batchSize" | "seed" | "epochs" | "maxSteps">,
): number =>
  Math.min(stepsPerEpoch(run.scenes, run) * run.epochs, run.maxSteps ?? Number.POSITIVE_INFINITY);

/** The metrics of an evaluation for the log, the summary and the table. */
function testOf(classes: readonly string[], judged: Judged): RunSummary["test"] {
  const { loss, accuracy, dice, meanIou } = judged;
  const { name, value } = headline(classes, judged);
  return { loss, accuracy, dice, meanIou, [name]: value };
}

type Optimizer = AdamW<Storage> | RMSprop<Storage>;

function makeOptimizer(
  run: SegmentationRun,
  lr: number | ReturnType<typeof cosine>,
  groups: ReturnType<typeof flattenByDType>,
  storage: ReturnType<typeof storageFor>,
): Optimizer {
  const inputs = groups.map((params) => ({ params }));
  const eps = 1e-8 * (run.lossWeight ?? 1);
  return run.optimizer === "rmsprop"
    ? new RMSprop(run.runtime.target, inputs, {
        lr,
        momentum: 0.999,
        eps,
        weightDecay: 1e-8,
        storage,
      })
    : new AdamW(run.runtime.target, inputs, { lr, eps, weightDecay: run.weightDecay, storage });
}

type Groups = Optimizer["paramGroups"];

/** Lowers the rate where evaluations do not improve. Its state is saved with the other hooks'. */
function plateauHook(groups: Groups): TrainingHook {
  const plateau = new ReduceOnPlateau(groups, { mode: "max", patience: 5 });
  return {
    // The dice of a diverged network is missing.
    onEvaluation: ({ values }) => void plateau.step(values.dice ?? Number.NaN),
    stateDict: () => plateau.stateDict(),
    loadStateDict: (state: ReturnType<typeof plateau.stateDict>) => plateau.loadStateDict(state),
  };
}

const rateOf = ([group]: Groups): number => (typeof group?.lr === "number" ? group.lr : 0);
