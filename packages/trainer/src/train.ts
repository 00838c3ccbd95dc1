import type { Device } from "@halfstep/device";
import type { GradScaler, ScaledOptimizer, StepOutcome } from "@halfstep/grad-scaler";
import type { Runtime, Storage, Tensor } from "@halfstep/tensor";
import type { Batches } from "./batch-source.js";
import type { TrainingHook } from "./hooks.js";
import type { TrainingPrecision } from "./precision.js";
import { startRun } from "./start-run.js";
import type {
  EvaluationMetrics,
  Hyperparameters,
  PhaseCosts,
  StepCounters,
  StepMetrics,
} from "./summary.js";
import type { TrainingCheckpoints } from "./training-state.js";

/** The part of an optimizer that the loop uses. */
export interface TrainableOptimizer extends ScaledOptimizer<Storage> {
  zeroGrad(): void;
}

/** Options of training. */
export interface TrainOptions<Batch> {
  readonly runtime: Runtime;
  /** The device of a GPU runtime, whose counters tell what a step costs. */
  readonly device?: Device | undefined;
  /** The recipe that the model runs by; apply it to the model (`applyRecipe`) where it is not one of torch.amp's. */
  readonly precision: TrainingPrecision;
  /** Records the forward pass of a batch and its loss, a scalar; under autocast where the recipe casts op by op. */
  readonly loss: (batch: Batch) => Tensor;
  readonly optimizer: TrainableOptimizer;
  /** Scales the loss. A disabled scaler is the identity. */
  readonly scaler: GradScaler<Storage, Tensor>;
  /** `Infinity` where `maxSteps` ends training. */
  readonly epochs: number;
  /** Ends training after so many steps, whatever epochs are left. */
  readonly maxSteps?: number | undefined;
  /** The batches of an epoch, counted from 0: the same for the same epoch whenever it is asked for. */
  readonly batches: (epoch: number) => Batches<Batch>;
  /**
   * The batches of an epoch from number `first` on, for training that is resumed in the middle of it. Default: those of
   * `batches`, of which the first ones are made and left out.
   */
  readonly batchesFrom?: ((epoch: number, first: number) => Batches<Batch>) | undefined;
  /**
   * How many batches make one step: gradients are those of their mean loss. The last step of an epoch has the batches that
   * are left. Default 1.
   */
  readonly accumulate?: number | undefined;
  /** How many samples, or tokens, a batch of an accumulation counts for. Default: all batches count alike. */
  readonly samples?: ((batch: Batch) => number) | undefined;
  /** Called when gradients are unscaled, before the step: `() => clipGradNorm(optimizer, 1)`. */
  readonly clip?: (() => unknown) | undefined;
  /** What accompanies training, by names of its own, under which states of hooks are saved. */
  readonly hooks?: Readonly<Record<string, TrainingHook>> | undefined;
  readonly checkpoints?: TrainingCheckpoints | undefined;
  /** The learning rate after this many applied steps: for the metrics. */
  readonly lr: (appliedSteps: number) => number;
  /**
   * What becomes of a batch whose gradients overflowed: `"skip"` goes on to the next one, `"retry"` runs the batch again with
   * the scale that is left, and so waits for the device after each step. Default "skip".
   */
  readonly onOverflow?: "skip" | "retry";
  /** Goes on after a step that was applied though its loss was not finite. Default false: then training fails. */
  readonly allowNonFiniteLoss?: boolean | undefined;
  /** Called for every step, in order, up to `reportInterval` steps late: what a step did is known when the device tells. */
  readonly onStep?: (metrics: StepMetrics, outcome: StepOutcome | undefined) => void;
  /** Called for every evaluation that a hook tells of, in order with the steps. */
  readonly onEvaluation?: (metrics: EvaluationMetrics) => void;
  /** Ends training after the step, or micro-step, that is under way; with `checkpoints`, what there is by then is saved. */
  readonly signal?: AbortSignal | undefined;
}

/** What training left. */
export interface TrainResult {
  /** With those before the checkpoint that training went on from. */
  readonly steps: number;
  readonly appliedSteps: number;
  readonly skippedSteps: number;
  /** 1 without scaling. */
  readonly finalScale: number;
  /** Median over steady state; the mean over all steps of a run too short to have one. */
  readonly msPerStep: number;
  /** Bytes that the forward pass of a step keeps for its backward pass. */
  readonly activationBytes: number;
  /** Bytes that the plan of a step holds at most, parameters and optimizer state aside. */
  readonly stepBytes: number;
  readonly perStep: StepCounters;
  /** Of a step on the GPU's clock, median of samples; undefined where the device has no timestamps, or there were too few steps. */
  readonly deviceMsPerStep: number | undefined;
  /** What the host's time went into, and how much memory the device held. */
  readonly phases: PhaseCosts;
  /** What optimizer and scaler were made with. */
  readonly hyperparameters: Hyperparameters;
  /** True where `signal` ended training early. */
  readonly isAborted: boolean;
  /** True where a hook did. */
  readonly isStopped: boolean;
  /** Steps that a checkpoint had done already; 0 where training began. */
  readonly resumedAt: number;
}

/**
 * The training loop: forward, scaled backward, guarded step, update, for every batch of every epoch. No step waits for the
 * device; losses and the scaler's outcomes follow every `reportInterval` steps.
 *
 * Resumed from a checkpoint, in this process or another, it goes on with the bits that it would have gone on with: parameters,
 * optimizer, scaler, random numbers, batches, learning rates, reports.
 *
 * @throws DivergenceError after a step that was applied with a loss that is not finite; CheckpointError where a checkpoint does not fit; StorageError where one cannot be saved; what `loss`, `clip`,
 * `onStep` and hooks throw. Steps that were done before are told first.
 */
export async function train<Batch>(options: TrainOptions<Batch>): Promise<TrainResult> {
  const run = await startRun(options);
  try {
    await run.train();
  } catch (error) {
    await run.giveUp();
    throw error;
  }
  return run.result();
}
