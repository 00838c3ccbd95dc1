import type { Checkpoint } from "../checkpoint/checkpoint.js";
import type { TrainingHook } from "../hooks.js";
import type { RunSummary } from "../summary.js";
import type { TrackedRun, Tracker } from "../trackers/metrics-sink.js";
import { mlflowTracker } from "../trackers/mlflow.js";
import { openTelemetryTracker } from "../trackers/open-telemetry.js";
import { wandbTracker } from "../trackers/wandb.js";
import { hasHook } from "./events.js";
import { UsageError } from "./program.js";
import type { RunFlags } from "./run-flags.js";

/** Trackers of experiments by the flags that name them. */
export type Trackers = Readonly<Record<string, Tracker>>;

/**
 * The trackers of `--wandb`, `--mlflow` and `--otel`. None of them has been reached yet.
 * @throws MissingPackageError; UsageError where an environment variable is missing
 */
export async function openTrackers({
  wandb,
  mlflow,
  otel,
}: Partial<Pick<RunFlags, "wandb" | "mlflow" | "otel">>): Promise<Trackers> {
  return {
    ...(wandb && { wandb: await wandbTracker() }),
    ...(mlflow && { mlflow: refusing("--mlflow", mlflowTracker) }),
    ...(otel && { otel: await openTelemetryTracker() }),
  };
}

/** A run at some trackers. */
export interface TrackedTraining {
  /** For `train()`. */
  readonly hooks: Readonly<Record<string, TrainingHook>>;
  /** Ends the run there: with its summary, or without one where it was stopped or failed. It takes a few seconds at most. */
  close(summary?: RunSummary): Promise<void>;
}

/** Begins a run at trackers, or goes on in that of a checkpoint. */
export function track(
  trackers: Trackers,
  run: TrackedRun,
  checkpoint?: Checkpoint,
): TrackedTraining {
  const sinks = Object.entries(trackers).map(([name, begin]) => [name, begin(run)] as const);
  const hooks = sinks.map(([name, { close: _, loadStateDict, ...hook }]) => {
    // The flag may be new with --resume: the checkpoint then has no state of it.
    const isKnown = loadStateDict && !(checkpoint && !hasHook(checkpoint, name));
    return [name, isKnown ? { ...hook, loadStateDict } : hook] as const;
  });
  return {
    hooks: Object.fromEntries(hooks),
    async close(summary) {
      await Promise.all(sinks.map(([, sink]) => sink.close(summary)));
    },
  };
}

/** What a tracker refuses is a wrong use of its flag. */
function refusing(flag: string, open: () => Tracker): Tracker {
  try {
    return open();
  } catch (error) {
    if (error instanceof RangeError) throw new UsageError(`${flag}: ${error.message}`);
    throw error;
  }
}
