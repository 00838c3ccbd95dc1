import type { TopLevelSpec } from "vega-lite";
import { formatBytes, formatDuration, formatNumber } from "../quantities.js";
import { resultRows } from "../results.js";
import {
  type EvaluationMetrics,
  isEvaluation,
  type MetricsLine,
  type PhaseName,
  type Settings,
  type SettingValue,
  type StepMetrics,
  type Summary,
  type Versions,
} from "../summary.js";
import { evaluationChart, lossChart, memoryChart, scaleChart } from "./charts.js";
import { escapeHtml, listHtml, tableHtml } from "./html.js";
import { type Sample, samplesHtml } from "./samples.js";

/** A part of a report that a program adds. */
export interface ReportSection {
  /** Plain text. */
  readonly title: string;
  /** Inserted into the page unchanged: escape text from other sources. */
  readonly html: string;
}

/** Options of a report. */
export interface ReportOptions {
  /** The unit of the loss, for axes: "nats" of a cross-entropy, "mean squared error". Default: none. */
  readonly lossUnit?: string | undefined;
  /** Examples of the model's outputs, shown before the figures of cost. */
  readonly samples?: readonly Sample[] | undefined;
  /** Sections at the end, in their order. */
  readonly sections?: readonly ReportSection[] | undefined;
}

/**
 * One HTML page without scripts or links to elsewhere: results, loss curves, evaluations, samples, loss scale with skipped steps, memory,
 * the cost of steps and phases, settings and environment. The charts are SVG rendered by Vega, so the page opens from disk and prints.
 */
export const renderReport = async (
  summary: Summary,
  lines: readonly MetricsLine[],
  { lossUnit, samples = [], sections: own = [] }: ReportOptions = {},
): Promise<string> => {
  const metrics = lines.filter((line): line is StepMetrics => !isEvaluation(line));
  const evaluations = await evaluationCharts(lines.filter(isEvaluation), lossUnit);
  const scales = scaleChart(metrics);
  const skipped = metrics.filter(({ applied }) => !applied).length;
  const sections = [
    section("Results", tableHtml(resultRows(summary))),
    section(
      "Training loss",
      metrics.length === 0
        ? text("No steps were recorded.")
        : await svg(lossChart(metrics, lossUnit)),
    ),
    ...(evaluations === "" ? [] : [section("Evaluations", evaluations)]),
    ...(samples.length === 0 ? [] : [section("Samples", samplesHtml(samples))]),
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
    section("What a step costs", tableHtml(stepRows(summary))),
    ...(summary.runs.some(({ phases }) => phases)
      ? [section("What time went into", tableHtml(phaseRows(summary), { textColumns: 2 }))]
      : []),
    ...settingSections(summary),
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

const evaluationCharts = async (
  evaluations: readonly EvaluationMetrics[],
  lossUnit: string | undefined,
): Promise<string> => {
  const names = new Set(evaluations.flatMap(({ values }) => Object.keys(values)));
  const charts = [...names].map((name) => svg(evaluationChart(name, evaluations, lossUnit)));
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
      phaseTime(milliseconds / 1000),
      String(times),
      formatNumber(milliseconds / times),
      peakBytes === 0 ? "–" : formatBytes(peakBytes),
    ]),
  ),
];

/** Most phases take less than a minute. */
const phaseTime = (seconds: number): string =>
  seconds < 60 ? `${seconds.toFixed(1)} s` : formatDuration(seconds);

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

/** The settings and the environment of the program. */
const settingSections = ({ settings, runs, versions = {}, machine, device }: Summary): string[] => {
  const list = (title: string, entries: readonly (readonly [string, string])[]): string[] =>
    entries.length === 0 ? [] : [section(title, listHtml(entries))];
  const told = runs.flatMap(({ hyperparameters }) => hyperparameters ?? []);
  return [
    ...list("Flags", united([settings ?? {}])),
    ...list(
      "Optimizer",
      united(told.flatMap(({ optimizer, groups = [] }) => [optimizer, ...groups])),
    ),
    ...list("Rule of the loss scale", united(told.map(({ lossScale }) => lossScale))),
    ...list("Versions and machine", [
      ...versionRows(versions),
      ["adapter", `${device.adapter} (${device.tier} tier)`],
      ...(machine === undefined
        ? []
        : ([
            ["system", machine.os],
            ["processor", `${machine.cpu}, ${machine.cores} cores`],
            ["memory", formatBytes(machine.memoryBytes)],
          ] as const)),
    ]),
  ];
};

/** The names of all settings, each with its distinct values. */
function united(settings: readonly Settings[]): [name: string, values: string][] {
  const found = new Map<string, Set<string>>();
  for (const each of settings)
    for (const [name, value] of Object.entries(each)) {
      const values = found.get(name) ?? new Set();
      found.set(name, values.add(settingText(value)));
    }
  return [...found].map(([name, values]) => [name, [...values].join(" | ")]);
}

const settingText = (value: SettingValue): string =>
  (typeof value === "object" && value !== null ? value : [value])
    .map((each) => (typeof each === "number" ? numberText(each) : String(each ?? "–")))
    .join(", ");

/** Six digits, or all digits of whole numbers: 2000, 1e-8, 3.40282e+38. */
const numberText = (value: number): string =>
  String(Number.isSafeInteger(value) ? value : Number(value.toPrecision(6)));

/** Packages of one version in one row. */
const versionRows = (versions: Versions): [string, string][] => {
  const own = Object.entries(versions).filter(([name]) => name.startsWith("@halfstep/"));
  const isOne = own.length > 1 && new Set(own.map(([, version]) => version)).size === 1;
  const others = Object.entries(versions).filter(([name]) => !name.startsWith("@halfstep/"));
  return [...others, ...(isOne ? [["@halfstep/*", own[0]?.[1] as string] as const] : own)].map(
    ([name, version]) => [name, version],
  );
};

/** Vega takes a quarter of a second to load, so it is loaded only for a report. */
const svg = async (spec: TopLevelSpec): Promise<string> => {
  const [{ parse, View }, { compile }] = await Promise.all([import("vega"), import("vega-lite")]);
  const view = new View(parse(compile(spec).spec), { renderer: "none" });
  try {
    return `<figure>${await view.toSVG()}</figure>`;
  } finally {
    view.finalize();
  }
};

const section = (title: string, content: string): string =>
  `<section>\n<h2>${escapeHtml(title)}</h2>\n${content}\n</section>`;

const text = (value: string): string => `<p>${escapeHtml(value)}</p>`;

const style = `
body { font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fff; max-width: 960px; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.5em; margin-bottom: 0; }
h2 { font-size: 1.15em; margin-top: 2em; border-bottom: 1px solid #ddd; }
p { color: #555; }
figure { margin: 0; }
svg, img { max-width: 100%; height: auto; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; width: 100%; }
th, td { padding: .35em .6em; text-align: right; border-bottom: 1px solid #eee; }
td { white-space: nowrap; }
th { font-weight: 600; vertical-align: bottom; }
th.text, td.text { text-align: left; }
dl { columns: 2; column-gap: 2em; margin: 1em 0; }
dl div { display: flex; justify-content: space-between; gap: 1em; break-inside: avoid; border-bottom: 1px solid #eee; padding: .2em 0; }
dt { color: #555; white-space: nowrap; }
dd { margin: 0; text-align: right; overflow-wrap: anywhere; }
.samples { display: flex; flex-wrap: wrap; gap: 1em; margin-top: 1em; align-items: flex-start; }
.sample { font-size: .87em; line-height: 1.35; }
.sample.text { flex: 1 1 100%; }
.sample.pictured { min-width: 7em; max-width: 100%; }
.sample.pictured > :not(.pictures) { width: 0; min-width: 100%; }
.sample .title { color: #555; }
.sample .wrong { color: #c00; font-weight: 600; }
.sample .pictures { display: flex; gap: .5em; }
.sample img { display: block; image-rendering: pixelated; border: 1px solid #ddd; }
.sample pre { font: inherit; margin: .3em 0; white-space: pre-wrap; background: #f6f6f6; padding: .5em .7em; }
figcaption { color: #555; }
`;
