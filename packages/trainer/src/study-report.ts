import { formatBytes, formatNumber } from "./quantities.js";
import { pairedDifference, type Spread, type Study, type StudyRun, spreadOf } from "./study.js";

/** Names of outcomes with their own columns. */
const usual = ["metric", "loss", "wallSeconds", "peakBytes", "skippedSteps"];

/**
 * The results of a study as Markdown: means ± standard deviations, and differences from the first variant, paired by seed, ±
 * standard errors. It also lists wall time, peak bytes and skipped steps, and every run.
 * @param file the name of the file with the runs
 */
export function renderStudy(study: Study, runs: readonly StudyRun[], file: string): string {
  const { app, metric, variants } = study;
  const [baseline = ""] = variants;
  const of = (variant: string, name: string): Spread =>
    spreadOf(runs.filter((run) => run.variant === variant).map((run) => outcomeOf(run, name)));
  const extras = [...new Set(runs.flatMap(({ outcome }) => Object.keys(outcome)))].filter(
    (name) => !usual.includes(name),
  );
  const title = `${metric.name}${metric.unit === "" ? "" : `, ${metric.unit}`}`;
  const means = table(
    ["", "runs", title, "loss", "wall", "peak", "skipped steps", ...extras],
    variants.map((variant) => [
      variant,
      String(of(variant, "metric").count),
      plusMinus(of(variant, "metric"), "deviation"),
      plusMinus(of(variant, "loss"), "deviation"),
      meanOf(of(variant, "wallSeconds"), (seconds) => `${formatNumber(seconds)} s`),
      meanOf(of(variant, "peakBytes"), formatBytes),
      meanOf(of(variant, "skippedSteps"), formatNumber),
      ...extras.map((name) => plusMinus(of(variant, name), "deviation")),
    ]),
  );
  const difference = (variant: string, name: string): string =>
    plusMinus(pairedDifference(runs, variant, baseline, name), "error", true);
  const differences = table(
    ["", title, "loss"],
    variants
      .slice(1)
      .map((variant) => [variant, ...["metric", "loss"].map((name) => difference(variant, name))]),
  );
  const seeds = [...new Set(runs.map(({ seed }) => seed))].sort((a, b) => a - b);
  const each = table(
    ["seed", ...variants],
    seeds.map((seed) => [
      String(seed),
      ...variants.map((variant) => {
        const run = runs.find((each) => each.seed === seed && each.variant === variant);
        return run
          ? `${digits(outcomeOf(run, "metric"))}, ${digits(outcomeOf(run, "loss"))}`
          : "missing";
      }),
    ]),
  );
  const machines = [...new Set(runs.map(({ machine }) => machine))];
  return `# ${app}: ${variants.join(", ")}

\`npm run study -- ${app}\` trains every variant from the same seeds, each run in a process of its own. ${metric.better === "max" ? "More" : "Less"} ${metric.name} is better.

${machines.join("; ")}. Outcomes: [${file}](${file}).

Mean ± standard deviation over seeds:

${means}

Mean difference from ${baseline}, paired by seed, ± its standard error:

${differences}

Every run, ${metric.name} and loss:

${each}
`;
}

const outcomeOf = ({ outcome }: StudyRun, name: string): number => outcome[name] ?? Number.NaN;

const digits = (value: number): string =>
  Number.isNaN(value) ? "–" : Math.abs(value) >= 10 ? value.toFixed(2) : value.toFixed(4);

const meanOf = ({ mean }: Spread, format: (mean: number) => string): string =>
  Number.isNaN(mean) ? "–" : format(mean);

function plusMinus(spread: Spread, which: "deviation" | "error", signed = false): string {
  if (spread.count === 0) return "–";
  const decimals = Math.abs(spread.mean) >= 10 && !signed ? 2 : 4;
  const sign = signed && spread.mean > 0 ? "+" : "";
  const mean = Number.isNaN(spread.mean) ? "–" : `${sign}${spread.mean.toFixed(decimals)}`;
  const off = spread[which];
  return Number.isFinite(off) ? `${mean} ± ${off.toFixed(decimals)}` : mean;
}

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
