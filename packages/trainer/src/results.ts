import { formatBytes, formatNumber, formatScale } from "./quantities.js";
import type { RunSummary, Summary } from "./summary.js";

/** A column of the table of results; numbers are aligned on the right. */
interface ResultColumn {
  readonly title: string;
  cell(run: RunSummary): string;
}

const columns = (runs: readonly RunSummary[]): readonly ResultColumn[] => [
  { title: "precision", cell: (run) => run.precision },
  ...metricsOf(runs).map((name) => ({
    title: `test ${name}`,
    cell: (run: RunSummary) => testCell(run, name),
  })),
  { title: "test loss", cell: (run) => testCell(run, "loss") },
  { title: "ms/step", cell: (run) => formatNumber(run.msPerStep) },
  { title: "samples/s", cell: (run) => formatNumber(run.samplesPerSecond) },
  { title: "peak", cell: (run) => formatBytes(run.peakBytes) },
  { title: "activations", cell: (run) => formatBytes(run.activationBytes) },
  { title: "skipped", cell: (run) => `${run.skippedSteps} of ${run.steps}` },
  { title: "final scale", cell: (run) => formatScale(run.finalScale) },
];

const metricsOf = (runs: readonly RunSummary[]): readonly string[] =>
  [...new Set(runs.flatMap(({ test }) => Object.keys(test)))].filter((name) => name !== "loss");

const testCell = ({ test, isTested }: RunSummary, name: string): string =>
  metricCell(name, isTested === false ? undefined : test[name]);

/** Formats a metric; accuracies as percentages. */
export const metricCell = (name: string, value: number | null | undefined): string => {
  if (value === undefined || value === null) return "–";
  return name.toLowerCase().endsWith("accuracy")
    ? `${(value * 100).toFixed(2)} %`
    : value.toFixed(4);
};

/** The rows of the table of results, in the terminal and in the report, with its titles first. */
export const resultRows = ({ runs }: Summary): string[][] => [
  columns(runs).map(({ title }) => title),
  ...runs.map((run) => columns(runs).map((column) => column.cell(run))),
];
