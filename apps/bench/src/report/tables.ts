import type { Calls } from "../calls.js";
import { ours } from "../lanes/names.js";
import type { Measured, Report, Row } from "../results.js";
import { geometricMean, logLogSlope, median } from "../statistics.js";
import {
  type Cell,
  cell,
  float32Of,
  labelOf,
  measured,
  nothing,
  shortOutcome,
  type Table,
} from "./cells.js";
import {
  formatBytes,
  formatMilliseconds,
  formatPercent,
  formatRate,
  formatTimes,
} from "./format.js";
import {
  explained,
  markOf,
  processesThatDiffer,
  seriesOf,
  speedsOf,
  type Time,
} from "./processes.js";
import { productLines } from "./products.js";

/** A report as text, in the form that Markdown and HTML share. */
export interface Page {
  readonly title: string;
  readonly paragraphs: readonly string[];
  readonly tables: readonly Table[];
}

export function tablesOf(report: Report): Page {
  const tables = [
    sideBySide(report, "operation", "Operations"),
    sideBySide(report, "training", "Training steps"),
    processorTime(report),
    halfPrecision(report),
    stepCosts(report),
    kernelShares(report),
    scaling(report),
    processesThatDiffer(report),
    checks(report),
  ];
  return {
    title: "Halfstep beside its peers",
    paragraphs: introduction(report),
    tables: tables.filter(({ rows }) => rows.length > 0).map(explained),
  };
}

function introduction({ machine, lanes, limits, rows, ...run }: Report): string[] {
  const rates = Object.values(limits);
  const middle = (name: "copyBytesPerSecond" | "operationsPerSecond"): number =>
    median(rates.map((rate) => rate[name]));
  const isCpuTime = rates.some((rate) => rate.isCpuTime);
  const versions = lanes.flatMap(({ title, version }) => (version ? [`${title} ${version}`] : []));
  const missing = lanes.flatMap(({ title, missing }) => (missing ? [`${title}: ${missing}`] : []));
  return [
    `${machine.adapter}; ${machine.tier} tier; ${machine.cores} × ${machine.processor}, ${machine.platform}, Node ${machine.node}. ` +
      `${run.date.slice(0, 10)}, ${run.mode} run of ${run.wallSeconds} s, ${run.rounds} interleaved rounds ${processesOf(run.processes, rows)}, ` +
      `load average ${machine.load.map((load) => load.toFixed(1)).join(" before and ")} after.`,
    `Limits of this machine, measured in the same rounds: copy ${formatRate(middle("copyBytesPerSecond"))}B/s (read and written), ` +
      `float32 multiply-add ${formatRate(middle("operationsPerSecond"))}FLOP/s${isCpuTime ? ", both a core of CPU time" : ""}. ` +
      "A fraction of the limit is the time that they allow, for operands touched once, divided by the median" +
      `${isCpuTime ? " of CPU time" : ""}.`,
    ...productLines(machine),
    `Lanes: ${versions.join(", ")}.`,
    ...(missing.length > 0 ? [`Missing: ${missing.join("; ")}.`] : []),
    summary(rows),
  ];
}

/** Rows of lanes that were too slow to prepare again are those of one process. */
function processesOf(processes: number, rows: readonly Row[]): string {
  if (processes === 1) return "in one process of each lane";
  const single = rows.flatMap(({ outcomes }) =>
    Object.values(outcomes).filter(
      (outcome) => outcome.status === "measured" && outcome.processes.length === 1,
    ),
  ).length;
  const results = `${single} ${single === 1 ? "result" : "results"}`;
  const exception = single > 0 ? ` (${results} of the first alone: slow to prepare)` : "";
  return `in ${processes} fresh processes of each lane${exception}`;
}

/** Shared rows: those that a peer on WebGPU, or any peer, could do too. */
function summary(rows: readonly Row[]): string {
  const sentence = (which: string, isIn: (lane: string) => boolean): string => {
    const ratios = rows.flatMap((row) =>
      Object.entries(row.outcomes).flatMap(([lane, outcome]) =>
        lane !== ours.name && isIn(lane) && outcome.status === "measured" && outcome.ratio
          ? [outcome.ratio]
          : [],
      ),
    );
    if (ratios.length === 0) return `No shared row with ${which}.`;
    const losses = ratios.filter((ratio) => ratio < 1).length;
    return `Against ${which}: ${ratios.length} comparisons, ${losses} lost, geometric mean ${formatTimes(geometricMean(ratios))}.`;
  };
  return [
    sentence("peers on WebGPU", (lane) => lane.endsWith("webgpu")),
    sentence("peers on the CPU", (lane) => lane.endsWith("wasm") || lane.endsWith("cpu")),
    ...(rows.some((row) => measured(row, torch))
      ? [sentence("PyTorch", (lane) => lane === torch)]
      : []),
  ].join(" ");
}

function sideBySide(report: Report, level: Row["level"], title: string): Table {
  const rows = report.rows.filter((row) => row.level === level);
  const peers = report.lanes.filter(
    ({ name }) => name !== ours.name && rows.some((row) => measured(row, name)),
  );
  return {
    title,
    note: "Times of the peers are multiples of ours, paired by round; bold where the peer is faster. “wrong” is a result outside the tolerance.",
    columns: [
      "",
      "precision",
      "Halfstep",
      "rate",
      "of the limit",
      ...peers.map((lane) => lane.title),
    ],
    rows: rows.map((row) => {
      const own = measured(row, ours.name);
      return [
        cell(labelOf(row)),
        cell(row.precision),
        own ? timeCell(own) : shortOutcome(row, ours.name),
        own ? cell(rateOf(row, own)) : nothing,
        own ? cell(formatPercent(own.fractionOfLimit)) : nothing,
        ...peers.map(({ name }) => ratioCell(row, name)),
      ];
    }),
  };
}

/** On a software adapter every lane computes on the processor, and this hardly depends on what else it does. */
function processorTime({ machine, lanes, rows }: Report): Table {
  const shared = rows.filter(({ level }) => level !== "scaling");
  const peers = lanes.filter(
    ({ name }) => name !== ours.name && shared.some((row) => measured(row, name)),
  );
  const time = (row: Row, lane: string) => {
    const figures = measured(row, lane);
    const median = figures?.cpuMilliseconds?.median;
    return figures && median && { median, mark: markOf(seriesOf(figures, "cpuMilliseconds")) };
  };
  return {
    title: "CPU time on a software adapter",
    note: "Of all threads of a lane's process, without its polling: other work on the machine hardly changes it. A driver uses all cores, WebAssembly one, so that on an idle machine the ratios on the wall differ by as much.",
    columns: ["", "precision", "Halfstep", ...peers.map(({ title }) => title)],
    rows: !machine.isSoftware
      ? []
      : shared.flatMap((row) => {
          const own = time(row, ours.name);
          if (!own) return [];
          const ratios = peers.map(({ name }): Cell => {
            const theirs = time(row, name);
            if (!theirs) return shortOutcome(row, name);
            const ratio = theirs.median / own.median;
            return { text: `${formatTimes(ratio)}${theirs.mark}`, isLoss: ratio < 1 };
          });
          const text = `${formatMilliseconds(own.median)}${own.mark}`;
          return [[cell(labelOf(row)), cell(row.precision), cell(text), ...ratios]];
        }),
  };
}

/** The performance of the hardware's own library, which runs neither in a browser nor in WebAssembly. */
const torch = "torch-native";

function rateOf({ items, cost }: Row, { milliseconds, itemsPerSecond }: Measured): string {
  if (items && itemsPerSecond !== undefined) return `${formatRate(itemsPerSecond)}${items.unit}/s`;
  const seconds = milliseconds.median / 1000;
  // Operations that touch each element a few times are bound by memory on every machine.
  return cost.operations > 8 * cost.bytes
    ? `${formatRate(cost.operations / seconds)}FLOP/s`
    : `${formatRate(cost.bytes / seconds)}B/s`;
}

function ratioCell(row: Row, lane: string): Cell {
  const theirs = measured(row, lane);
  if (!theirs) return shortOutcome(row, lane);
  if (theirs.ratio === undefined) return cell(formatMilliseconds(theirs.milliseconds.median));
  const text = `${formatTimes(theirs.ratio)}${markOf(seriesOf(theirs, "ratio"))}`;
  return { text, isLoss: theirs.ratio < 1 };
}

const timeCell = (own: Measured): Cell =>
  cell(`${formatMilliseconds(own.milliseconds.median)}${markOf(seriesOf(own, "milliseconds"))}`);

/** Halfstep compared with itself: the gain of half precision. */
function halfPrecision({ rows, machine }: Report): Table {
  const halves = rows.filter((row) => row.precision !== "float32" && row.level !== "scaling");
  return {
    title: "Half precision against float32",
    note: "float32's time over half's (above 1: half is faster), and half's bytes over float32's.",
    columns: [
      "",
      "precision",
      "speed",
      "speed in CPU time",
      "peak bytes",
      "activation bytes",
      "casts that cost a launch",
    ],
    rows: halves.flatMap((row) => {
      const half = measured(row, ours.name);
      const base = float32Of(row, rows);
      if (!half || !base) return [];
      const speed = (time: Time): Cell => {
        const [a, b] = [base[time], half[time]];
        if (!a || !b) return nothing;
        return cell(`${formatTimes(a.median / b.median)}${markOf(speedsOf(half, base, time))}`);
      };
      const share = (pick: "allocatorPeakBytes" | "activationBytes"): Cell => {
        const [a, b] = [half.facts?.[pick], base.facts?.[pick]];
        return a && b ? cell(formatPercent(a / b)) : nothing;
      };
      return [
        [
          cell(labelOf(row)),
          cell(row.precision),
          speed("milliseconds"),
          machine.isSoftware ? speed("cpuMilliseconds") : nothing,
          share("allocatorPeakBytes"),
          share("activationBytes"),
          half.facts?.castDispatches === undefined ? nothing : cell(`${half.facts.castDispatches}`),
        ],
      ];
    }),
  };
}

const callNames: readonly (keyof Calls)[] = [
  "submits",
  "dispatches",
  "buffers",
  "bindGroups",
  "pipelines",
  "writes",
  "maps",
];

/** Steady state of training: WebGPU calls of each library, counted by wrapping the API. */
function stepCosts({ rows, lanes }: Report): Table {
  const number = (value: number): string => `${Math.round(value * 10) / 10}`;
  return {
    title: "What a step costs",
    note: "WebGPU calls a step in steady state, counted alike for every library; bytes of GPU buffers at the peak; time of the host until the call returns, on an idle device.",
    columns: ["", "precision", "lane", ...callNames, "peak bytes", "host time", "step"],
    rows: rows
      .filter(({ level }) => level === "training")
      .flatMap((row) =>
        lanes.flatMap(({ name, title }) => {
          const own = measured(row, name);
          if (!own) return [];
          const isGpu = name.endsWith("webgpu");
          return [
            [
              cell(labelOf(row)),
              cell(row.precision),
              cell(title),
              ...callNames.map((call) => (isGpu ? cell(number(own.callsPerStep[call])) : nothing)),
              isGpu || name === torch
                ? cell(formatBytes(isGpu ? own.peakBytes : (own.facts?.allocatorPeakBytes ?? 0)))
                : nothing,
              // PyTorch gets one request for all steps of a repetition.
              name === torch ? nothing : cell(formatMilliseconds(own.hostMicroseconds / 1000)),
              cell(formatMilliseconds(own.milliseconds.median)),
            ],
          ];
        }),
      ),
  };
}

/** Kernels that take this share of a row's time, or more, are shown. */
const shownShare = 0.05;

/** The breakdown of Halfstep's time: for training, and for operations that a peer does faster. */
function kernelShares({ rows }: Report): Table {
  const isLost = (row: Row): boolean =>
    Object.keys(row.outcomes).some((lane) => (measured(row, lane)?.ratio ?? 1) < 1);
  return {
    title: "Where our time goes",
    note: "Shares of GPU time by kernel, from one call of the first process with timestamps around every dispatch: training steps, and operations that a peer does faster.",
    columns: ["", "precision", "kernel", "dispatches", "time", "share"],
    rows: rows
      .filter((row) => row.level === "training" || (row.level === "operation" && isLost(row)))
      .flatMap((row) => {
        const kernels = measured(row, ours.name)?.kernels ?? [];
        const total = kernels.reduce((sum, { milliseconds }) => sum + milliseconds, 0);
        return kernels
          .filter(({ milliseconds }) => milliseconds >= shownShare * total)
          .map(({ label, dispatches, milliseconds }) => [
            cell(labelOf(row)),
            cell(row.precision),
            cell(label),
            cell(`${dispatches}`),
            cell(formatMilliseconds(milliseconds)),
            cell(formatPercent(milliseconds / total)),
          ]);
      }),
  };
}

/** Exponents of time and memory along each axis. */
function scaling({ rows }: Report): Table {
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    if (!row.point) continue;
    const key = `${row.workload}\n${row.point.axis}\n${row.precision}`;
    groups.set(key, [...(groups.get(key) ?? []), row]);
  }
  return {
    title: "Scaling",
    note: "Exponents k of time ∝ xᵏ: slopes of least squares on logarithms, over all points and over the two largest.",
    columns: [
      "axis",
      "precision",
      "points",
      "times",
      "k in the axis",
      "k of the last two",
      "k in parameters",
      "k of peak bytes",
    ],
    rows: [...groups.values()].flatMap((group) => {
      const points = group.flatMap((row) => {
        const own = measured(row, ours.name);
        return own && row.point ? [{ ...row.point, own }] : [];
      });
      if (points.length < 2) return [];
      const slope = (
        x: (p: (typeof points)[number]) => number,
        y: (p: (typeof points)[number]) => number,
        of = points,
      ): Cell => {
        const pairs = of.map((p) => [x(p), y(p)] as const);
        const isVaried = new Set(pairs.map(([a]) => a)).size > 1;
        return isVaried ? cell(logLogSlope(pairs).toFixed(2)) : nothing;
      };
      const time = (p: (typeof points)[number]) => p.own.milliseconds.median;
      const [first] = group;
      return [
        [
          cell(first?.point?.axis ?? ""),
          cell(first?.precision ?? ""),
          cell(points.map(({ value }) => value).join(", ")),
          cell(points.map(({ own }) => timeCell(own).text).join(", ")),
          slope((p) => p.value, time),
          slope((p) => p.value, time, points.slice(-2)),
          slope((p) => p.parameters, time),
          slope(
            (p) => p.value,
            (p) => p.own.facts?.allocatorPeakBytes ?? p.own.peakBytes,
          ),
        ],
      ];
    }),
  };
}

/** Lanes whose numbers or processes failed, and the largest differences of those that were timed. */
function checks({ rows, lanes }: Report): Table {
  return {
    title: "Checks before timing",
    note: "Largest difference from our float32 result and from float64 samples of the definition, relative to the largest element; of training, of the losses of the first five steps.",
    columns: ["", "precision", "allowed", ...lanes.map(({ title }) => title)],
    rows: rows
      .filter(({ level }) => level !== "scaling")
      .map((row) => [
        cell(labelOf(row)),
        cell(row.precision),
        cell(row.tolerance.toExponential(0)),
        ...lanes.map(({ name }) => {
          const outcome = row.outcomes[name];
          if (!outcome || outcome.status === "absent") return nothing;
          if (outcome.status === "failed") return cell(`failed: ${outcome.reason.slice(0, 80)}`);
          const figure = outcome.difference.toExponential(1);
          return cell(outcome.status === "wrong" ? `wrong: ${figure}` : figure);
        }),
      ]),
  };
}
