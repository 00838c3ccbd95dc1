import type { TrainingHook } from "../hooks.js";
import { type ProgressStream, trainingProgress } from "../progress.js";
import { metricCell } from "../results.js";
import type { MetricsLine } from "../summary.js";

/** Options of following a run. */
export interface FollowOptions {
  /** The beginning of each line, such as the precision. */
  readonly label: string;
  readonly epochs: number;
  /** Total number of steps. */
  readonly steps: number;
  /** Samples in a step, for samples/s. */
  readonly batchSize: number;
  /** Where steps and evaluations are recorded: a `RunFolder`. Default: nowhere. */
  readonly folder?: { record(metrics: MetricsLine): void } | undefined;
  /** Where progress is shown. Default: stderr. */
  readonly stream?: ProgressStream;
}

/** A hook that shows and records. */
export interface FollowTraining extends TrainingHook {
  readonly onCompile: NonNullable<TrainingHook["onCompile"]>;
  readonly onStep: NonNullable<TrainingHook["onStep"]>;
  readonly onEvaluation: NonNullable<TrainingHook["onEvaluation"]>;
  /** A line that stays. */
  note(line: string): void;
  /** Shows the last state. Call it when training has ended or failed. */
  stop(): void;
}

/**
 * A hook that records every step in a run folder, and shows progress: epoch, step, loss, speed, loss scale, time left, with
 * a line for each step that was skipped and for each evaluation. Speed and time left leave out the compiling of programs.
 *
 * @example
 * const progress = followTraining({ label: "float16", epochs, steps, batchSize, folder });
 * await train({ …, hooks: { progress } }).finally(progress.stop);
 */
export function followTraining(options: FollowOptions): FollowTraining {
  const { label, epochs, steps, batchSize, folder, stream = process.stderr } = options;
  const progress = trainingProgress(label, stream);
  let first: number | undefined;
  let skipped = 0;
  return {
    onCompile: (compiling) => progress.compiling(compiling),
    onStep(metrics, outcome) {
      folder?.record(metrics);
      // An earlier process has done the steps before a resumed run.
      first ??= metrics.step;
      if (outcome?.status === "skipped") {
        skipped++;
        progress.note(
          `step ${metrics.step} skipped, scale ${outcome.scaleBefore} → ${outcome.scaleAfter}`,
        );
      }
      progress.update({
        epoch: metrics.epoch,
        epochs,
        step: metrics.step,
        steps,
        loss: metrics.loss ?? undefined,
        samplesPerSecond: ((metrics.step - first + 1) * batchSize) / progress.seconds,
        scale: outcome?.scaleAfter ?? metrics.scale,
        skipped,
      });
    },
    onEvaluation(metrics) {
      folder?.record(metrics);
      const { step, epoch, values, best } = metrics;
      const found = Object.entries(values).map(
        ([name, value]) => `${name} ${metricCell(name, value)}`,
      );
      progress.note(
        [`evaluation after step ${step}, epoch ${epoch}`, ...found, ...(best ? ["best"] : [])].join(
          " · ",
        ),
      );
    },
    note: (line) => progress.note(line),
    stop: () => progress.stop(),
  };
}
