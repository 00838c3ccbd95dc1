import { formatBytes, formatNumber, formatScale } from "./quantities.js";
import type { RunSummary, Summary } from "./summary.js";

/** A column of the table of results; numbers are aligned on the right. */
interface ResultColumn {
  readonly title: string;
  cell(run: RunSummary): string;
}

/** The table that ends a run, in the terminal and in the report. */
const resultColumns: readonly ResultColumn[] = [
  { title: "precision", cell: (run) => run.precision },
  { title: "test accuracy", cell: (run) => `${(run.test.accuracy * 100).toFixed(2)} %` },
  { title: "test loss", cell: (run) => run.test.loss.toFixed(4) },
  { title: "ms/step", cell: (run) => formatNumber(run.msPerStep) },
  { title: "samples/s", cell: (run) => formatNumber(run.samplesPerSecond) },
  { title: "peak", cell: (run) => formatBytes(run.peakBytes) },
  { title: "activations", cell: (run) => formatBytes(run.activationBytes) },
  { title: "skipped", cell: (run) => `${run.skippedSteps} of ${run.steps}` },
  { title: "final scale", cell: (run) => formatScale(run.finalScale) },
];

/** The rows of the table of results, its titles first. */
export const resultRows = ({ runs }: Summary): string[][] => [
  resultColumns.map(({ title }) => title),
  ...runs.map((run) => resultColumns.map((column) => column.cell(run))),
];
