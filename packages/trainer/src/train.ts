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
  /** The groups of parameters: the rate of the first one is reported. A rate may be a function of the applied steps. */
  readonly paramGroups?: readonly {
    readonly lr?: number | ((appliedSteps: number) => number);
  }[];
}

/** Options of training. */
export interface TrainOptions<Batch> {
  readonly runtime: Runtime;
  /** The device of a GPU runtime; its counters measure the cost of a step. */
  readonly device?: Device | undefined;
  /** The recipe of the model. Recipes other than torch.amp's must be applied to the model before (`applyRecipe`). */
  readonly precision: TrainingPrecision;
  /** Records the forward pass of a batch and its loss, a scalar; under autocast where the recipe casts op by op. */
  readonly loss: (batch: Batch) => Tensor;
  readonly optimizer: TrainableOptimizer;
  /** Scales the loss. A disabled scaler is the identity. */
  readonly scaler: GradScaler<Storage, Tensor>;
  /** `Infinity` where `maxSteps` ends training. */
  readonly epochs: number;
  /** Ends training after so many steps, before the last epoch if need be. */
  readonly maxSteps?: number | undefined;
  /** The batches of an epoch, counted from 0. It must return the same batches for the same epoch in every call. */
  readonly batches: (epoch: number) => Batches<Batch>;
  /**
   * The batches of an epoch from number `first` on, for training that is resumed within an epoch. Default: those of `batches`, with the
   * first ones skipped.
   */
  readonly batchesFrom?: ((epoch: number, first: number) => Batches<Batch>) | undefined;
  /**
   * Number of batches in one step: gradients are those of their mean loss. The last step of an epoch has the remaining batches. Each batch
   * of a step needs memory of its own. Default 1.
   */
  readonly accumulate?: number | undefined;
  /**
   * Number of samples or tokens of a batch, its weight in an accumulation: 0 where this process only repeats samples of another. Default: all
   * batches weigh the same.
   */
  readonly samples?: ((batch: Batch) => number) | undefined;
  /**
   * Called after the backward passes of a step, with its batches: averages the gradients of several processes (`jobExchange`). Checks,
   * clipping and the update follow.
   */
  readonly reduce?: ((batches: readonly Batch[]) => void) | undefined;
  /** Called with unscaled gradients, before the step: `() => clipGradNorm(optimizer, 1)`. */
  readonly clip?: (() => unknown) | undefined;
  /** Hooks by name; their states are saved under these names. */
  readonly hooks?: Readonly<Record<string, TrainingHook>> | undefined;
  readonly checkpoints?: TrainingCheckpoints | undefined;
  /**
   * The learning rate after this many applied steps, for the metrics alone: the optimizer steps with its own. Default: that of the
   * optimizer's first group, `optimizer.paramGroups[0].lr`, at each step. A function that takes the number is called when steps are
   * reported, up to `reportInterval` steps late; one without a parameter at each step.
   */
  readonly lr?: ((appliedSteps: number) => number) | undefined;
  /**
   * What to do with a batch whose gradients overflowed: `"skip"` continues with the next one, `"retry"` runs the batch again with the
   * reduced scale, and so waits for the device after each step. Default "skip".
   */
  readonly onOverflow?: "skip" | "retry";
  /** Continues after a step that was applied although its loss was not finite. Default false: training fails. */
  readonly allowNonFiniteLoss?: boolean | undefined;
  /**
   * Called for every step, in order, up to `reportInterval` steps late, when its outcome was read from the device. Training does not wait for a
   * promise that it returns. A rejection of it ends training as an error does; the end of training waits for all.
   */
  readonly onStep?: (metrics: StepMetrics, outcome: StepOutcome | undefined) => void;
  /** Called for every evaluation that a hook reports, in order with the steps. Promises count as those of `onStep` do. */
  readonly onEvaluation?: (metrics: EvaluationMetrics) => void;
  /**
   * Ends training after the current step or micro-step; with `checkpoints`, the state is saved. A wait for `batches` ends as well, and errors
   * of the loader do not count after the signal: it may obey the same one. With `reduce`, training waits for the loader.
   */
  readonly signal?: AbortSignal | undefined;
}

/** The result of training. */
export interface TrainResult {
  /** Number of steps, including those before the checkpoint from which training continued. */
  readonly steps: number;
  readonly appliedSteps: number;
  readonly skippedSteps: number;
  /** 1 without scaling. */
  readonly finalScale: number;
  /** Median over steady state, without evaluations and checkpoints; the mean over all steps of a run too short to have one. */
  readonly msPerStep: number;
  /** Bytes that the forward pass of a step keeps for its backward pass. */
  readonly activationBytes: number;
  /** Peak bytes of a step's plan, without parameters and optimizer state. */
  readonly stepBytes: number;
  readonly perStep: StepCounters;
  /** Median time of a step on the GPU's clock; undefined where the device has no timestamps, or there were too few steps. */
  readonly deviceMsPerStep: number | undefined;
  /** The host's time and the device's memory by phase. */
  readonly phases: PhaseCosts;
  /** The hyperparameters of optimizer and scaler. */
  readonly hyperparameters: Hyperparameters;
  /** True where `signal` ended training early. */
  readonly isAborted: boolean;
  /** True where a hook ended training. */
  readonly isStopped: boolean;
  /** Steps that were completed before the checkpoint; 0 for new training. */
  readonly resumedAt: number;
}

/**
 * The training loop: forward, scaled backward, guarded step, update, for every batch of every epoch. No step waits for the
 * device; losses and the scaler's outcomes follow every `reportInterval` steps.
 *
 * Resumed from a checkpoint, in this process or another, it continues with the same bits as an uninterrupted run: parameters, optimizer,
 * scaler, random numbers, batches, learning rates, reports.
 *
 * @throws TypeError where an option is missing or is no function, and where `loss`, `samples`, `reduce`, `clip` or `record` gives a promise.
 * RecordingError inside `noGrad()` or `autocast()`, which would have ended when steps are recorded. DivergenceError after a step that was
 * applied with a loss that is not finite; CheckpointError where a checkpoint does not fit; StorageError where one cannot be saved. The errors
 * of `loss`, `clip`, `onStep` and hooks, also those of promises of `onStep` and `onEvaluation`. Earlier steps are reported first.
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
