import type { TrainingHook } from "../hooks.js";
import type { MetricsLine, RunSummary, Settings } from "../summary.js";

/**
 * Where the figures of a run go while it trains: event files, a tracker of experiments. A sink is a hook of `train()` that gets every step
 * and every evaluation, in their order. It never waits and never fails training, unless it writes to a disk that is full.
 */
export interface MetricsSink
  extends Pick<TrainingHook, "stateDict" | "loadStateDict">,
    Required<Pick<TrainingHook, "onStep" | "onEvaluation">> {
  /** Called when training has ended: with its summary, or without one where it was stopped or failed. A second call does nothing. */
  close(summary?: RunSummary): void | Promise<void>;
}

/** What a tracker of experiments is told about a run. */
export interface TrackedRun {
  /** For people, such as "digits float16". */
  readonly name: string;
  /** The flags of the program, or other settings of the run. */
  readonly settings?: Settings | undefined;
  /** Called with lines for people: where the run is shown, and once if the tracker cannot be reached. Training goes on. */
  readonly onNote: (line: string) => void;
}

/** Begins a run at a tracker of experiments, which need not be reachable. */
export type Tracker = (run: TrackedRun) => MetricsSink;

/** The members of a sink that treats steps and evaluations alike. */
export const recording = (
  record: (line: MetricsLine) => void,
): Pick<MetricsSink, "onStep" | "onEvaluation"> => ({
  onStep: (metrics) => record(metrics),
  onEvaluation: (metrics) => record(metrics),
});
