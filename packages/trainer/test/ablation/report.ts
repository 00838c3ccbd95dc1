import type { PassName } from "@halfstep/tensor/internals";
import { hardwareClasses, type PlannedStep, shortName } from "../planned-steps.js";
import { bytesRatio, type Effect, isChanged, launchesAdded, peakRatio } from "./effects.js";
import type { TimeRatios } from "./times.js";

/** What is known of each pass. */
export interface Findings {
  readonly effects: ReadonlyMap<PassName, readonly Effect[]>;
  /** Of the passes that were timed. */
  readonly times: ReadonlyMap<PassName, TimeRatios>;
}

/** Tables of what each pass gains, as Markdown. */
export function tablesOf({ effects, times }: Findings): string {
  const rows = [...effects];
  const measured = (name: string, ...cells: Measure): string =>
    table(
      [name, "least", "median", "most"],
      rows.map((row) => measuredRow(row, ...cells)),
    );
  const sections = [
    `## Plans that change\n\n${table(["pass", ...hardwareClasses, "for"], rows.map(changedRow))}`,
    `## Launches\n\n${measured("without", launchesAdded, signed)}`,
    `## Bytes loaded and stored\n\n${measured("without", bytesRatio, percent)}`,
    `## Memory at the peak\n\n${measured("without", peakRatio, percent)}`,
  ];
  if (times.size > 0)
    sections.push(
      `## Time of a step\n\n${table(
        ["without", "step", "launches", "elapsed", "of the driver’s threads", "pairs"],
        [...times].map(([pass, ratios]) => timeRow(pass, ratios, effects.get(pass) ?? [])),
      )}`,
    );
  return sections.join("\n\n");
}

function changedRow([pass, effects]: readonly [PassName, readonly Effect[]]): string[] {
  const counts = hardwareClasses.map((hardware) => {
    const same = effects.filter(({ step }) => step.hardware === hardware);
    return { changed: same.filter(isChanged).length, of: same.length };
  });
  const changing = hardwareClasses.filter((_, h) => counts[h]?.changed);
  const meant =
    changing.length === hardwareClasses.length
      ? "all"
      : changing.map((hardware) => `${hardware} alone`).join("") || "no plan here";
  return [pass, ...counts.map(({ changed, of }) => `${changed} of ${of}`), meant];
}

type Measure = readonly [measure: (effect: Effect) => number, write: (figure: number) => string];

function measuredRow(
  [pass, effects]: readonly [PassName, readonly Effect[]],
  ...[measure, write]: Measure
): string[] {
  const sorted = effects
    .filter(isChanged)
    .map((effect) => ({ figure: measure(effect), step: effect.step }))
    .sort((a, b) => a.figure - b.figure);
  if (sorted.length === 0) return [pass, unchanged, unchanged, unchanged];
  const figures = sorted.map(({ figure }) => figure);
  const end = (at: number): string => {
    const { figure, step } = sorted.at(at) as (typeof sorted)[number];
    const text = write(figure);
    return text === unchanged ? text : `${text} (${nameOf(step)})`;
  };
  return [pass, end(0), write(quantile(figures, 0.5)), end(-1)];
}

const unchanged = "–";
const signed = (count: number): string =>
  count === 0 ? unchanged : `${count > 0 ? "+" : "−"}${Math.abs(count)}`;
const percent = (ratio: number): string => {
  const share = ((ratio - 1) * 100).toFixed(1);
  if (Number(share) === 0) return unchanged;
  return `${ratio > 1 ? "+" : "−"}${share.replace("-", "")} %`;
};

/** "GPT, float16, clipped, 2 batches, software" */
function nameOf({ model, precision, clips, microBatches, hardware }: PlannedStep): string {
  const parts = [shortName(model), precision, ...(clips ? ["clipped"] : [])];
  return [...parts, ...(microBatches > 1 ? [`${microBatches} batches`] : []), hardware].join(", ");
}

function timeRow(
  pass: PassName,
  { step, elapsed, driver }: TimeRatios,
  effects: readonly Effect[],
): string[] {
  const effect = effects.find((other) => other.step === step);
  const launches = effect ? `${effect.all.launches} → ${effect.without.launches}` : "";
  return [pass, nameOf(step), launches, spread(elapsed), spread(driver), String(elapsed.length)];
}

/** Median and quartiles. */
function spread(ratios: readonly number[]): string {
  if (ratios.length === 0) return unchanged;
  const [low, middle, high] = [0.25, 0.5, 0.75].map((share) => quantile(ratios, share).toFixed(2));
  return `×${middle} (${low} to ${high})`;
}

function quantile(samples: readonly number[], share: number): number {
  const sorted = [...samples].sort((a, b) => a - b);
  const place = share * (sorted.length - 1);
  const below = sorted[Math.floor(place)] as number;
  return below + ((sorted[Math.ceil(place)] as number) - below) * (place % 1);
}

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map((_, c) => (c === 0 ? "---" : "---:")), ...rows]
    .map((cells) => `| ${cells.join(" | ")} |`)
    .join("\n");
