import { currentRegion } from "@halfstep/autocast";
import { kernelTable } from "@halfstep/kernels/planner";
import { isGradEnabled, RecordingError } from "@halfstep/tensor";
import type { Checkpoint } from "./checkpoint/checkpoint.js";
import { CheckpointError } from "./checkpoint/checkpoint-error.js";
import { requireEvery, requireHooks } from "./hooks.js";
import { changedOptions, hyperparametersOf } from "./hyperparameters.js";
import { requireKnownOptions } from "./known-options.js";
import { type Kinds, said } from "./option-kinds.js";
import { recipeFor } from "./precision.js";
import { Reports } from "./reports.js";
import { requireOptions } from "./required-options.js";
import { sha256OfText } from "./sha256.js";
import type { TrainOptions } from "./train.js";
import { TrainingRun } from "./training-run.js";
import {
  requireFreeNames,
  restoreStates,
  type Setting,
  type TrainingCheckpoints,
  type TrainingState,
} from "./training-state.js";

const kinds: Kinds<TrainOptions<never>> = {
  ...{ runtime: "any", device: "any", precision: "any", loss: "function", optimizer: "any" },
  ...{ scaler: "any", epochs: "any", maxSteps: "any", batches: "function" },
  ...{ batchesFrom: "function", accumulate: "any", samples: "function", reduce: "function" },
  ...{ clip: "function", hooks: "any", checkpoints: "any", lr: "function", onOverflow: "any" },
  ...{ allowNonFiniteLoss: "any", reportInterval: "any", onStep: "function" },
  ...{ onEvaluation: "function", signal: "any" },
};

/** Checks options, and restores all states from the checkpoint from which training continues. */
export async function startRun<Batch>(options: TrainOptions<Batch>): Promise<TrainingRun<Batch>> {
  requireOptions("train", options, {
    runtime: "gpuRuntime(device) or cpuRuntime()",
    precision: '"float32", "float16", "bfloat16" or a recipe',
    loss: "a function that records the loss of a batch",
    optimizer: "new AdamW(…) or another",
    scaler: "new GradScaler(ampPrimitives(runtime))",
    epochs: "a whole number, or Infinity",
    batches: "a function that gives the batches of an epoch",
  });
  requireKnownOptions(options, kinds);
  requireNoRegion();
  const { optimizer, scaler, onOverflow = "skip", accumulate = 1, hooks = {} } = options;
  const reports = new Reports();
  const checkpoints = options.checkpoints && reportingTo(reports, options.checkpoints);
  if (onOverflow !== "skip" && onOverflow !== "retry")
    throw new RangeError(`onOverflow is ${said(onOverflow)}: it must be "skip" or "retry"`);
  requireHooks(hooks);
  if (onOverflow === "retry" && !(scaler.enabled && scaler.rule.dynamic))
    throw new RangeError(
      'onOverflow is "retry", but the loss scale is not dynamic: the batch would overflow again; use "skip"',
    );
  const counting = Object.keys(hooks).find((name) => hooks[name]?.needsEqualSteps);
  if (onOverflow === "retry" && counting !== undefined)
    throw new RangeError(
      `onOverflow is "retry", by which one rank takes more steps than others, and ${counting} exchanges after equally many: use "skip"`,
    );
  if (!Number.isSafeInteger(accumulate) || accumulate < 1)
    throw new RangeError(`accumulate is ${said(accumulate)}: it must be a whole number from 1 on`);
  requireCount("epochs", options.epochs);
  if (options.maxSteps !== undefined) requireCount("maxSteps", options.maxSteps);
  if (checkpoints?.every) requireEvery("checkpoints.every", checkpoints.every);
  if (checkpoints) requireFreeNames(checkpoints.parts);
  const setting = settingOf(options, await tablesOf(options));
  const checkpoint = checkpoints && (await checkpointOf(checkpoints));
  const given = hyperparametersOf(optimizer, scaler);
  const restored =
    checkpoints &&
    checkpoint &&
    (await restoreStates(
      { parts: checkpoints.parts, scaler, hooks },
      checkpoint,
      setting,
      checkpoints.onNote,
    ));
  if (checkpoint) {
    const note = changedOptions(given, hyperparametersOf(optimizer, scaler), checkpoint.path);
    if (note !== undefined) checkpoints?.onNote?.(note);
  }
  // A scaler that was used before, or has loaded a state, continues its count.
  const { scale = 1, step: counted = 0 } = await scaler.stateDict();
  const state: TrainingState = restored ?? { ...setting, ...beginning, scale };
  const place = { state, setting, stepsBefore: counted - state.step, reports };
  return new TrainingRun(options, place, restored && checkpoint);
}

/** Refuses training inside a region: its steps would be recorded when the region has ended. */
function requireNoRegion(): void {
  if (isGradEnabled() && !currentRegion()) return;
  const region = isGradEnabled() ? "autocast()" : "noGrad()";
  throw new RecordingError(
    `train() inside ${region}: the region ends before the steps are recorded. Call ${region} in loss(), or choose the precision.`,
  );
}

/** The same checkpoints, with promises of `onNote` among the reports. */
const reportingTo = (reports: Reports, checkpoints: TrainingCheckpoints): TrainingCheckpoints => ({
  ...checkpoints,
  onNote: checkpoints.onNote && ((line) => reports.add(checkpoints.onNote?.(line))),
});

/** With NaN, training would never end. */
function requireCount(name: string, count: number): void {
  if (!(Number.isSafeInteger(count) && count >= 0) && count !== Number.POSITIVE_INFINITY)
    throw new RangeError(
      `${name} is ${said(count)}: it must be a whole number from 0 on, or Infinity`,
    );
}

/** The checkpoint from which training continues; reports it, and the errors of newer ones. */
async function checkpointOf(checkpoints: TrainingCheckpoints): Promise<Checkpoint | undefined> {
  const { resume, store, onNote } = checkpoints;
  if (resume === undefined) await noteEarlierRun(checkpoints);
  if (resume !== "auto") return resume;
  const { checkpoint, skipped } = await store.newest();
  for (const { message } of skipped) onNote?.(`a checkpoint is passed over: ${message}`);
  onNote?.(
    checkpoint
      ? `going on from ${checkpoint.path}, after step ${checkpoint.step}`
      : "there is no checkpoint to go on from: training starts from the beginning",
  );
  return checkpoint;
}

/** Says that checkpoints of an earlier run will be replaced. Damaged ones are no loss. */
async function noteEarlierRun({ store, parts, onNote }: TrainingCheckpoints): Promise<void> {
  if (!onNote || Object.values(parts).some(({ removesEarlierRun }) => removesEarlierRun)) return;
  const checkpoint = await store.newest().then(
    (newest) => newest.checkpoint,
    (error: unknown) => {
      if (!(error instanceof CheckpointError)) throw error;
      return undefined;
    },
  );
  if (checkpoint)
    onNote(
      `${checkpoint.path} is of an earlier run, which this one replaces: resume: "auto" would go on from it, and another store would keep it`,
    );
}

const settingOf = <Batch>(
  { precision, runtime, accumulate = 1 }: TrainOptions<Batch>,
  tables: string | null,
): Setting => ({
  recipe: recipeFor(precision).name,
  adapter: runtime.label,
  tables,
  accumulate,
});

/** A hash of the tables that decide the order of sums, besides the adapter. */
async function tablesOf<Batch>({
  checkpoints,
  device,
}: TrainOptions<Batch>): Promise<string | null> {
  if (!checkpoints) return null;
  if (checkpoints.tables !== undefined) return checkpoints.tables;
  return device ? sha256OfText(kernelTable(device.capabilities.hardware)) : null;
}

const beginning = {
  ...{ step: 0, epoch: 0, batch: 0, microLosses: [], applied: 0 },
  ...{ activationBytes: 0, stepBytes: 0, isStopped: false },
};
