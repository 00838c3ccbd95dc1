/**
 * Shows where the processes of a lane disagree: marks in the other tables, and a table with the measurements of each
 * process.
 */
import { ours } from "../lanes/names.js";
import type { Counted, Measured, ProcessFigures, Report, Row } from "../results.js";
import { type Cell, cell, float32Of, labelOf, measured, nothing, type Table } from "./cells.js";
import { formatBytes, formatMilliseconds, formatTimes } from "./format.js";

/** A figure of each process, by its number. */
type Series = ReadonlyMap<number, number>;

export type Time = "milliseconds" | "cpuMilliseconds";

/** Times of each process, or how many times ours it took in its rounds. */
export const seriesOf = ({ processes }: Measured, name: Time | "ratio"): Series =>
  new Map(
    processes.flatMap(({ process, [name]: figure }) =>
      figure === undefined ? [] : [[process, figure] as const],
    ),
  );

/** How much faster half precision is, in each process. */
export function speedsOf(half: Measured, base: Measured, time: Time): Series {
  const bases = seriesOf(base, time);
  return new Map(
    [...seriesOf(half, time)].flatMap(([process, figure]) => {
      const longer = bases.get(process);
      return longer === undefined ? [] : [[process, longer / figure] as const];
    }),
  );
}

/** Figures of processes that are further apart than this are marked. */
const farApart = 1.25;

const apart = (series: Series): number =>
  series.size === 0 ? 1 : Math.max(...series.values()) / Math.min(...series.values());

const mark = " †";

/** The mark after a figure that is the median of these; empty where the processes agree. */
export const markOf = (series: Series): string => (apart(series) > farApart ? mark : "");

const title = "Where processes differ";

/** The table with the meaning of its marks, if it has any. */
export function explained(table: Table): Table {
  const isMarked = table.rows.some((cells) => cells.some(({ text }) => text.includes(mark)));
  if (!isMarked) return table;
  const percent = Math.round(100 * (farApart - 1));
  const note = `†: its processes are more than ${percent} % apart, see “${title}”.`;
  return { ...table, note: `${table.note} ${note}` };
}

/** One line for each figure that is marked in another table, and for each count that differs between processes. */
export function processesThatDiffer(report: Report): Table {
  const numbers = Array.from({ length: report.processes }, (_, i) => i + 1);
  const lines = report.rows.flatMap((row) =>
    report.lanes.flatMap((lane) => {
      const figures = measured(row, lane.name);
      if (!figures) return [];
      const about = [cell(labelOf(row)), cell(row.precision), cell(lane.title)];
      const times = shownSeries(row, lane.name, figures, report).flatMap(
        ([name, series, format]): Cell[][] => {
          if (apart(series) <= farApart) return [];
          const each = numbers.map((number): Cell => {
            const figure = series.get(number);
            return figure === undefined ? nothing : cell(format(figure));
          });
          return [[...about, cell(name), ...each, cell(formatTimes(apart(series)))]];
        },
      );
      const counts = countNames.flatMap((name): Cell[][] => {
        const texts = new Map(
          figures.processes.map((one) => [
            one.process,
            formatCount(name, countOf(figures, one, name)),
          ]),
        );
        // Bytes that no digit shown tells apart are the same.
        if (new Set(texts.values()).size < 2) return [];
        const each = numbers.map((number) => cell(texts.get(number) ?? nothing.text));
        return [[...about, cell(namesOfCounts[name]), ...each, nothing]];
      });
      return [...times, ...counts];
    }),
  );
  return {
    title,
    note: `Medians of each process over its rounds, where one is more than ${farApart} times another, and what one counted otherwise than the first. Other tables have medians over the rounds of all processes, and counts of the first.`,
    columns: ["", "precision", "lane", "", ...numbers.map((i) => `process ${i}`), "apart"],
    rows: lines,
  };
}

/** The figures of a lane on a row that the other tables show. */
function shownSeries(
  row: Row,
  lane: string,
  figures: Measured,
  { rows, machine }: Report,
): (readonly [name: string, series: Series, format: (figure: number) => string])[] {
  const base = lane === ours.name ? float32Of(row, rows) : undefined;
  const ofTime = (time: Time, name: string, speed: string) => [
    [name, seriesOf(figures, time), formatMilliseconds] as const,
    ...(base ? [[speed, speedsOf(figures, base, time), formatTimes] as const] : []),
  ];
  return [
    ...(lane === ours.name
      ? ofTime("milliseconds", "time", "speed against float32")
      : [["times ours", seriesOf(figures, "ratio"), formatTimes] as const]),
    ...(machine.isSoftware
      ? ofTime("cpuMilliseconds", "CPU time", "speed in CPU time against float32")
      : []),
  ];
}

const namesOfCounts: Readonly<Record<keyof Counted, string>> = {
  submits: "submits",
  dispatches: "dispatches",
  buffers: "buffers",
  bindGroups: "bind groups",
  pipelines: "pipelines",
  writes: "writes",
  maps: "maps",
  peakBytes: "peak bytes",
  allocatorPeakBytes: "allocated peak bytes",
  activationBytes: "activation bytes",
  castDispatches: "casts",
  otherKernels: "dispatches of other kernels",
};

const countNames = Object.keys(namesOfCounts) as (keyof Counted)[];

function countOf(first: Measured, { counted }: ProcessFigures, name: keyof Counted): number {
  const ofFirst: Partial<Counted> = {
    ...first.callsPerStep,
    peakBytes: first.peakBytes,
    ...first.facts,
  };
  return counted?.[name] ?? ofFirst[name] ?? 0;
}

const formatCount = (name: keyof Counted, count: number): string =>
  name.endsWith("Bytes") ? formatBytes(count) : `${Math.round(10 * count) / 10}`;
