import type { Device } from "@halfstep/device";
import type { Runtime } from "@halfstep/tensor";
import type { TrainingHook } from "./hooks.js";
import type { Stateful } from "./stateful.js";
import type { TrainingCheckpoints, TrainingParts } from "./training-state.js";

/**
 * What a recipe is given besides its own options: where it runs, what accompanies it, what stops it, and where it is saved. A
 * program gets one from `openRun()` of `@halfstep/trainer/cli`; studies and tests make their own, of which most is optional.
 */
export interface RunContext {
  readonly runtime: Runtime;
  /** Of a GPU runtime. */
  readonly device: Device | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly hooks?: Readonly<Record<string, TrainingHook>> | undefined;
  readonly checkpoints?: ContextCheckpoints | undefined;
}

/** Checkpoints to which the recipe will add what it trains: see {@link withParts}. */
export interface ContextCheckpoints extends Omit<TrainingCheckpoints, "parts"> {
  readonly parts: Readonly<Record<string, Stateful>>;
}

/**
 * The checkpoints of a context, with the parts of a recipe: for the option `checkpoints` of `train()`.
 *
 * @example
 * checkpoints: withParts(run.checkpoints, { model, optimizer, dropout: savedGenerator(model.generator) }),
 */
export const withParts = (
  checkpoints: ContextCheckpoints | undefined,
  parts: TrainingParts,
): TrainingCheckpoints | undefined =>
  checkpoints && { ...checkpoints, parts: { ...checkpoints.parts, ...parts } };
