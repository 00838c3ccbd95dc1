import type { TopLevelSpec } from "vega-lite";
import { formatBytes } from "../quantities.js";
import type { EvaluationMetrics, RunSummary, StepMetrics } from "../summary.js";
import { byPrecision, rawCurve, smoothCurve } from "./curves.js";

// Okabe and Ito's colours, which people with any colour vision can tell apart.
const colors: Readonly<Record<string, string>> = {
  float32: "#0072b2",
  float16: "#d55e00",
  bfloat16: "#009e73",
};
const moreColors = ["#cc79a7", "#e69f00", "#56b4e9", "#000000"];
// Curves of equal runs coincide: the later one is thinner, so that the earlier one stays visible.
const widths: Readonly<Record<string, number>> = { float32: 4, float16: 2.5, bfloat16: 1.2 };

const width = 820;
const frame = {
  background: "white",
  config: {
    font: "system-ui, sans-serif",
    axis: { gridColor: "#e6e6e6", labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal" },
    legend: { labelFontSize: 12, orient: "top", symbolOpacity: 1, symbolStrokeWidth: 4 },
    view: { stroke: null },
  },
} as const;
const stepAxis = {
  field: "step",
  type: "quantitative",
  title: "optimizer step",
  scale: { nice: false },
  axis: { format: ",d", tickMinStep: 1 },
} as const;

interface PrecisionScale<T> {
  readonly domain: string[];
  readonly range: T[];
}

/**
 * A Vega scale from precisions to colours or widths, known ones first, with only the precisions of the runs in the
 * legend.
 */
const scaleOf = <T>(
  known: Readonly<Record<string, T>>,
  more: readonly T[],
  runs: Iterable<string>,
): PrecisionScale<T> => {
  const names = new Set(runs);
  const domain = [
    ...Object.keys(known).filter((name) => names.has(name)),
    ...[...names].filter((name) => !(name in known)),
  ];
  let others = 0;
  const range = domain.map((name) => known[name] ?? (more[others++ % more.length] as T));
  return { domain, range };
};

const precisionColor = (runs: Iterable<string>) =>
  ({
    field: "precision",
    type: "nominal",
    title: null,
    scale: scaleOf(colors, moreColors, runs),
  }) as const;

const precisionWidth = (runs: Iterable<string>) =>
  ({
    field: "precision",
    type: "ordinal",
    // Shares the legend of the colours; without a title of its own neither has one.
    title: null,
    scale: scaleOf(widths, [2], runs),
  }) as const;

/** Training loss over steps, in a unit if it has one: every step faintly, its moving average on top. */
export const lossChart = (metrics: readonly StepMetrics[], unit?: string): TopLevelSpec => {
  const raw = rawCurve(metrics);
  const longest = Math.max(1, ...[...byPrecision(metrics).values()].map((run) => run.length));
  const smooth = smoothCurve(raw, Math.max(1, Math.min(longest, 1000) / 50));
  const y = {
    field: "loss",
    type: "quantitative",
    title: `training loss${inUnit(unit)}`,
    // A logarithm shows the end of training, where precisions could differ; it needs positive numbers.
    scale: { type: raw.every(({ loss }) => loss > 0) ? "log" : "linear", nice: false },
    // Shows 0.30000000000000004 as 0.3.
    axis: { format: "~g", tickCount: 8 },
  } as const;
  const precisions = new Set(raw.map(({ precision }) => precision));
  const color = precisionColor(precisions);
  // A single curve needs no scale of widths, whose range would be empty.
  const strokeWidth = precisions.size > 1 ? precisionWidth(precisions) : { value: 2.5 };
  return {
    ...frame,
    width,
    height: 320,
    layer: [
      {
        data: { values: raw },
        mark: { type: "line", strokeWidth: 1, opacity: 0.25 },
        encoding: { x: stepAxis, y, color },
      },
      {
        data: { values: smooth },
        mark: { type: "line" },
        encoding: { x: stepAxis, y, color, strokeWidth },
      },
    ],
  };
};

/**
 * Loss scale over steps, with the skipped steps marked; undefined when no run scaled its loss. A run is included if its
 * scale ever differed from 1 or a step was skipped.
 */
export const scaleChart = (metrics: readonly StepMetrics[]): TopLevelSpec | undefined => {
  const scaled = [...byPrecision(metrics)].filter(([, run]) =>
    run.some(({ scale, applied }) => scale !== 1 || !applied),
  );
  if (scaled.length === 0) return undefined;
  const color = precisionColor(scaled.map(([precision]) => precision));
  const y = {
    field: "power",
    type: "quantitative",
    title: "loss scale (powers of two)",
    scale: { zero: false, nice: true },
    axis: { tickMinStep: 1, tickCount: 8, labelExpr: powerLabel },
  } as const;
  return {
    ...frame,
    width,
    height: 220,
    layer: [
      {
        data: { values: scaled.flatMap(([, run]) => scaleChanges(run).map(withPower)) },
        mark: { type: "line", interpolate: "step-after", strokeWidth: 2 },
        encoding: { x: stepAxis, y, color },
      },
      {
        data: {
          values: scaled.flatMap(([, run]) => run.filter(({ applied }) => !applied).map(withPower)),
        },
        mark: { type: "point", shape: "cross", angle: 45, size: 90, filled: true, opacity: 1 },
        encoding: {
          x: stepAxis,
          y,
          color: { value: "#cc0000" },
        },
      },
    ],
  };
};

const withPower = (step: StepMetrics): StepMetrics & { readonly power: number } => ({
  ...step,
  power: Math.log2(step.scale),
});

/** 2 with its exponent raised: 2¹⁶. */
const powerLabel = `"2" + ${[..."-0123456789"].reduce(
  (text, sign, i) => `replace(${text}, /${sign}/g, "${"⁻⁰¹²³⁴⁵⁶⁷⁸⁹"[i]}")`,
  'format(datum.value, "d")',
)}`;

/** The first and last step of a run and every step whose scale differs from a neighbour's: enough for a step curve. */
const scaleChanges = (run: readonly StepMetrics[]): readonly StepMetrics[] =>
  run.filter(
    ({ scale }, index) =>
      index === 0 || index === run.length - 1 || run[index - 1]?.scale !== scale,
  );

/** Results of evaluations over steps: a curve for each precision, with the best points filled. */
export const evaluationChart = (
  name: string,
  evaluations: readonly EvaluationMetrics[],
  lossUnit?: string,
): TopLevelSpec => {
  const values = evaluations.flatMap(({ precision, step, best, values }) => {
    const value = values[name];
    return typeof value === "number" ? [{ precision, step, best, value }] : [];
  });
  const color = precisionColor(values.map(({ precision }) => precision));
  const y = {
    field: "value",
    type: "quantitative",
    title: `${name}${name === "loss" ? inUnit(lossUnit) : ""}`,
    scale: { zero: false },
    axis: { format: isShare(name) ? "~%" : "~g" },
  } as const;
  return {
    ...frame,
    width,
    height: 200,
    layer: [
      {
        data: { values },
        mark: { type: "line", strokeWidth: 2 },
        encoding: { x: stepAxis, y, color },
      },
      {
        data: { values: values.filter(({ best }) => best) },
        mark: { type: "point", filled: true, size: 50, opacity: 1 },
        encoding: { x: stepAxis, y, color },
      },
    ],
  };
};

const isShare = (name: string): boolean => /accuracy$/i.test(name);

const inUnit = (unit: string | undefined): string => (unit === undefined ? "" : ` (${unit})`);

/** Bytes held, as bars: peak, activations, parameters and optimizer state, a bar for each precision. */
export const memoryChart = (runs: readonly RunSummary[]): TopLevelSpec => {
  const kinds = [
    ["peak", (run: RunSummary) => run.peakBytes],
    ["activations", (run: RunSummary) => run.activationBytes],
    ["parameters", (run: RunSummary) => run.parameterBytes],
    ["optimizer state", (run: RunSummary) => run.optimizerBytes],
  ] as const;
  const values = kinds.flatMap(([kind, bytes]) =>
    runs.map((run) => ({
      kind,
      precision: run.precision,
      mebibytes: bytes(run) / 2 ** 20,
      label: formatBytes(bytes(run)),
    })),
  );
  const precisions = runs.map(({ precision }) => precision);
  const y = {
    field: "kind",
    type: "nominal",
    title: null,
    sort: kinds.map(([kind]) => kind),
    scale: { paddingInner: 0.25 },
  } as const;
  const offset = { field: "precision", sort: precisions } as const;
  const x = {
    field: "mebibytes",
    type: "quantitative",
    title: "memory (MiB)",
    axis: { tickCount: 8, labelFlush: false },
  } as const;
  return {
    ...frame,
    width: width - 60,
    height: { step: 18 },
    data: { values },
    layer: [
      {
        mark: { type: "bar" },
        encoding: { y, yOffset: offset, x, color: precisionColor(precisions) },
      },
      {
        mark: { type: "text", align: "left", dx: 4, fontSize: 11 },
        encoding: { y, yOffset: offset, x, text: { field: "label" } },
      },
    ],
  };
};
