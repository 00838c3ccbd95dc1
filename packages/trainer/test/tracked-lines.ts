import { isEvaluation, type MetricsLine, type RunSummary } from "../src/summary.js";
import type { MetricsSink } from "../src/trackers/metrics-sink.js";

/** A run of three steps, the second skipped, with an evaluation that has a loss which is not finite. */
const lines: readonly MetricsLine[] = [
  { precision: "float16", step: 1, epoch: 1, loss: 2.5, applied: true, scale: 1024, lr: 0.5 },
  { precision: "float16", step: 2, epoch: 1, loss: null, applied: false, scale: 1024, lr: 0.5 },
  {
    ...{ kind: "evaluation", precision: "float16", step: 2, epoch: 1, best: true },
    values: { loss: null, accuracy: 0.75 },
  },
  { precision: "float16", step: 3, epoch: 2, loss: 1.5, applied: true, scale: 512, lr: 0.25 },
];

/** Of that run. */
export const summary = { steps: 3, test: { loss: 0.5, accuracy: 0.875 } } as unknown as RunSummary;

/** Records it at a sink. */
export function record(sink: MetricsSink): void {
  for (const line of lines)
    if (isEvaluation(line)) sink.onEvaluation(line);
    else sink.onStep(line, undefined);
}
