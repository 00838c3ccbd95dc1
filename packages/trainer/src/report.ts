import type { TopLevelSpec } from "vega-lite";
import { formatBytes, formatDuration, formatNumber } from "./quantities.js";
import { evaluationChart, lossChart, memoryChart, scaleChart } from "./report/charts.js";
import { resultRows } from "./results.js";
import {
  type EvaluationMetrics,
  isEvaluation,
  type MetricsLine,
  type PhaseName,
  type StepMetrics,
  type Summary,
} from "./summary.js";

/** A part of a report that a program adds. */
export interface ReportSection {
  /** Plain text. */
  readonly title: string;
  /** As it is to be in the page: escape what was not written for it. */
  readonly html: string;
}

export interface ReportOptions {
  /** They stand at the end, in their order. */
  readonly sections?: readonly ReportSection[] | undefined;
}

/**
 * One HTML page without scripts or links to elsewhere: loss curves, evaluations, loss scale with skipped steps, memory, results,
 * what steps and phases cost.
 * The charts are SVG rendered by Vega, so the page opens from disk and prints.
 */
export const renderReport = async (
  summary: Summary,
  lines: readonly MetricsLine[],
  { sections: own = [] }: ReportOptions = {},
): Promise<string> => {
  const metrics = lines.filter((line): line is StepMetrics => !isEvaluation(line));
  const evaluations = await evaluationCharts(lines.filter(isEvaluation));
  const scales = scaleChart(metrics);
  const skipped = metrics.filter(({ applied }) => !applied).length;
  const sections = [
    section("Results", table(resultRows(summary))),
    section(
      "Training loss",
      metrics.length === 0 ? text("No steps were recorded.") : await svg(lossChart(metrics)),
    ),
    ...(evaluations === "" ? [] : [section("Evaluations", evaluations)]),
    section(
      "Loss scale",
      scales === undefined
        ? text("No run scaled its loss.")
        : (await svg(scales)) +
            text(
              skipped === 0
                ? "No step was skipped."
                : `A red cross marks a skipped step (${skipped}): its gradients were not finite, nothing was changed, and the scale was lowered.`,
            ),
    ),
    section(
      "Memory",
      summary.runs.length === 0
        ? text("No run was finished.")
        : await svg(memoryChart(summary.runs)),
    ),
    section("What a step costs", table(stepRows(summary))),
    ...(summary.runs.some(({ phases }) => phases)
      ? [section("What time went into", table(phaseRows(summary)))]
      : []),
    ...own.map(({ title, html }) => section(title, html)),
  ];
  const { task, seed, device } = summary;
  const seconds = summary.runs.reduce((sum, { wallSeconds }) => sum + wallSeconds, 0);
  const title = `${task}: ${summary.runs.map(({ precision }) => precision).join(", ")}`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
<style>${style}</style>
</head>
<body>
<h1>${escapeHtml(title)}</h1>
<p>${escapeHtml(device.adapter)} (${escapeHtml(device.kind)}, ${escapeHtml(device.tier)} tier), seed ${seed}, ${formatDuration(seconds)} in all</p>
${sections.join("\n")}
</body>
</html>
`;
};

const evaluationCharts = async (evaluations: readonly EvaluationMetrics[]): Promise<string> => {
  const names = new Set(evaluations.flatMap(({ values }) => Object.keys(values)));
  const charts = [...names].map((name) => svg(evaluationChart(name, evaluations)));
  return (await Promise.all(charts)).join("\n");
};

const phaseTitles: Readonly<Record<PhaseName, string>> = {
  data: "batches",
  record: "recording",
  submit: "planning, submitting, backpressure",
  evaluation: "evaluations and other hooks",
  checkpoint: "checkpoints",
};

const phaseRows = ({ runs }: Summary): string[][] => [
  ["precision", "phase", "time", "times", "ms each", "memory"],
  ...runs.flatMap(({ precision, phases = {} }) =>
    Object.entries(phases).map(([name, { milliseconds, times, peakBytes }]) => [
      precision,
      phaseTitles[name as PhaseName],
      formatDuration(milliseconds / 1000),
      String(times),
      formatNumber(milliseconds / times),
      peakBytes === 0 ? "–" : formatBytes(peakBytes),
    ]),
  ),
];

const stepRows = ({ runs }: Summary): string[][] => [
  [
    "precision",
    "dispatches",
    "of them casts",
    "submits",
    "host waits",
    "new buffers",
    "new bind groups",
    "device ms",
    "time",
  ],
  ...runs.map(({ precision, perStep, deviceMsPerStep, wallSeconds }) => [
    precision,
    ...[
      perStep.dispatches,
      perStep.castDispatches,
      perStep.submits,
      perStep.hostWaits,
      perStep.buffersCreated,
      perStep.bindGroupsCreated,
    ].map(String),
    deviceMsPerStep === undefined ? "–" : formatNumber(deviceMsPerStep),
    formatDuration(wallSeconds),
  ]),
];

/** Vega takes a quarter of a second to load: only a run that ends with a report pays for it. */
const svg = async (spec: TopLevelSpec): Promise<string> => {
  const [{ parse, View }, { compile }] = await Promise.all([import("vega"), import("vega-lite")]);
  const view = new View(parse(compile(spec).spec), { renderer: "none" });
  try {
    return `<figure>${await view.toSVG()}</figure>`;
  } finally {
    view.finalize();
  }
};

const escapeHtml = (value: string): string =>
  value.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);

const section = (title: string, content: string): string =>
  `<section>\n<h2>${escapeHtml(title)}</h2>\n${content}\n</section>`;

const text = (value: string): string => `<p>${escapeHtml(value)}</p>`;

const table = ([head = [], ...rows]: readonly string[][]): string => {
  const row = (tag: string, cells: readonly string[]): string =>
    `<tr>${cells.map((cell) => `<${tag}>${escapeHtml(cell)}</${tag}>`).join("")}</tr>`;
  return `<div class="wide"><table>\n<thead>${row("th", head)}</thead>\n<tbody>\n${rows.map((cells) => row("td", cells)).join("\n")}\n</tbody>\n</table></div>`;
};

const style = `
body { font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fff; max-width: 960px; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.5em; margin-bottom: 0; }
h2 { font-size: 1.15em; margin-top: 2em; border-bottom: 1px solid #ddd; }
p { color: #555; }
figure { margin: 0; }
svg, img { max-width: 100%; height: auto; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; width: 100%; }
th, td { padding: .35em .7em; text-align: right; white-space: nowrap; border-bottom: 1px solid #eee; }
th { font-weight: 600; }
th:first-child, td:first-child { text-align: left; }
`;
