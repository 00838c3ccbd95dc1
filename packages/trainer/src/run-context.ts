import type { Device } from "@halfstep/device";
import type { Runtime } from "@halfstep/tensor";
import type { Job } from "./cli/job.js";
import type { TrainingHook } from "./hooks.js";
import type { Stateful } from "./stateful.js";
import type { TrainingCheckpoints, TrainingParts } from "./training-state.js";

/**
 * The context of a recipe besides its own options: runtime, hooks, signal and checkpoints. A program gets one from
 * `openRun()` of `@halfstep/trainer/cli`; studies and tests make their own, with mostly optional members.
 */
export interface RunContext {
  readonly runtime: Runtime;
  /** The device of a GPU runtime. */
  readonly device: Device | undefined;
  readonly signal?: AbortSignal | undefined;
  /** The processes that train the model together. Default: this one alone. */
  readonly job?: Job | undefined;
  readonly hooks?: Readonly<Record<string, TrainingHook>> | undefined;
  readonly checkpoints?: ContextCheckpoints | undefined;
}

/** Checkpoints without the parts of the recipe: see {@link withParts}. */
export interface ContextCheckpoints extends Omit<TrainingCheckpoints, "parts"> {
  readonly parts: Readonly<Record<string, Stateful>>;
}

/**
 * Adds the parts of a recipe to the checkpoints of a context, for the option `checkpoints` of `train()`.
 *
 * @example
 * checkpoints: withParts(run.checkpoints, { model, optimizer, dropout: savedGenerator(model.generator) }),
 */
export const withParts = (
  checkpoints: ContextCheckpoints | undefined,
  parts: TrainingParts,
): TrainingCheckpoints | undefined =>
  checkpoints && { ...checkpoints, parts: { ...checkpoints.parts, ...parts } };
