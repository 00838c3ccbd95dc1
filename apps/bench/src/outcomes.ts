/** Converts the measurements of entries to the rows and limits of a report. */
import type { Entry } from "./entry.js";
import type { WarmedUp } from "./lane-process.js";
import { ours } from "./lanes/names.js";
import type { Counted, Limits, Measured, Outcome, ProcessFigures, Row } from "./results.js";
import { median, pairedRatio, type Sample, spreadOf } from "./statistics.js";
import type { Case, Workload } from "./workload.js";

export function limitsOf(entries: readonly Entry[], isSoftware: boolean): Limits {
  const isCpuTime =
    isSoftware &&
    entries.every(({ samples }) => samples.every((s) => s.cpuMilliseconds !== undefined));
  const rate = (name: string, amount: "bytes" | "operations"): number => {
    const entry = entries.find(({ chosen }) => chosen.name.startsWith(name));
    if (!entry || entry.samples.length === 0) {
      const why = entry?.refusal?.status === "failed" ? `: ${entry.refusal.reason}` : "";
      throw new Error(`the machine's limit "${name}" could not be measured${why}`);
    }
    const milliseconds = median(timesOf(entry.samples, isCpuTime));
    return (entry.chosen.cost("float32")[amount] / milliseconds) * 1000;
  };
  return {
    isCpuTime,
    copyBytesPerSecond: rate("copy", "bytes"),
    operationsPerSecond: rate("fma", "operations"),
  };
}

const timesOf = (samples: readonly Sample[], isCpuTime: boolean): number[] =>
  samples.map(({ milliseconds, cpuMilliseconds }) =>
    isCpuTime ? (cpuMilliseconds as number) : milliseconds,
  );

export function rowsOf(
  workload: Workload,
  cases: readonly Case[],
  entries: readonly Entry[],
  limits: Limits,
): Row[] {
  return cases.flatMap((chosen) =>
    chosen.precisions.map((precision): Row => {
      const ofRow = entries.filter(
        (entry) => entry.chosen === chosen && entry.subject.precision === precision,
      );
      const own = ofRow.find(({ lane }) => lane === ours);
      return {
        workload: workload.name,
        title: workload.title,
        level: workload.level,
        name: chosen.name,
        precision,
        cost: chosen.cost(precision),
        ...(chosen.items && { items: chosen.items }),
        ...(chosen.point && { point: chosen.point }),
        tolerance: chosen.tolerance[precision],
        outcomes: Object.fromEntries(
          ofRow.map((entry) => [entry.lane.name, outcomeOf(entry, own, limits)]),
        ),
      };
    }),
  );
}

function outcomeOf(entry: Entry, own: Entry | undefined, limits: Limits): Outcome {
  const { refusal, samples, chosen, subject } = entry;
  if (refusal) return refusal;
  const counted = entry.warmedUp.get(0);
  if (!counted || samples.length === 0) return { status: "failed", reason: "it was never timed" };
  const milliseconds = spreadOf(samples.map((sample) => sample.milliseconds));
  const { operations, bytes } = chosen.cost(subject.precision);
  const least =
    1000 * Math.max(operations / limits.operationsPerSecond, bytes / limits.copyBytesPerSecond);
  const cpu = samples.flatMap(({ cpuMilliseconds }) => cpuMilliseconds ?? []);
  const measured: Measured = {
    status: "measured",
    milliseconds,
    ...(cpu.length > 0 && { cpuMilliseconds: spreadOf(cpu) }),
    processes: figuresOf(entry, own),
    hostMicroseconds: median([...entry.warmedUp.values()].map((warm) => warm.hostMicroseconds)),
    callsPerStep: counted.callsPerStep,
    peakBytes: counted.peakBytes,
    ...(counted.facts && { facts: counted.facts }),
    ...(counted.kernels && { kernels: counted.kernels }),
    difference: entry.difference,
    ...(own && own.samples.length > 0 && { ratio: pairedRatio(own.samples, samples) }),
    fractionOfLimit: least / median(timesOf(samples, limits.isCpuTime)),
    ...(chosen.items && {
      itemsPerSecond: (chosen.items.count * 1000) / milliseconds.median,
    }),
  };
  return measured;
}

/** Of each process that was timed. */
function figuresOf({ samples, warmedUp }: Entry, ours: Entry | undefined): ProcessFigures[] {
  const first = warmedUp.get(0) as WarmedUp;
  return [...warmedUp].flatMap(([process, warm]) => {
    const isIn = (sample: Sample): boolean => sample.process === process;
    const [own, theirs] = [ours?.samples.filter(isIn) ?? [], samples.filter(isIn)];
    if (theirs.length === 0) return [];
    const cpu = theirs.flatMap(({ cpuMilliseconds }) => cpuMilliseconds ?? []);
    const counted = otherwise(countedIn(first, first), countedIn(warm, first));
    return [
      {
        process: process + 1,
        rounds: theirs.length,
        milliseconds: median(theirs.map(({ milliseconds }) => milliseconds)),
        ...(cpu.length > 0 && { cpuMilliseconds: median(cpu) }),
        ...(own.length > 0 && { ratio: pairedRatio(own, theirs) }),
        ...(counted && { counted }),
      },
    ];
  });
}

function countedIn(
  { callsPerStep, peakBytes, facts, kernels }: WarmedUp,
  first: WarmedUp,
): Counted {
  const known = new Set(first.kernels?.map(({ label }) => label));
  const others = kernels?.filter(({ label }) => !known.has(label)) ?? [];
  return {
    ...callsPerStep,
    peakBytes,
    ...facts,
    otherKernels: others.reduce((sum, { dispatches }) => sum + dispatches, 0),
  };
}

function otherwise(first: Counted, later: Counted): Partial<Counted> | undefined {
  const names = Object.keys(first) as (keyof Counted)[];
  const other = names.filter((name) => first[name] !== later[name]);
  if (other.length === 0) return undefined;
  return Object.fromEntries(other.map((name) => [name, later[name]]));
}
