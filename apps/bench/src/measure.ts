import { difference, differenceFromDefinition } from "./compare.js";
import { LaneClient } from "./lane-client.js";
import { limitsName, type Subject, type WarmedUp } from "./lane-process.js";
import { type LaneName, ours } from "./lanes/names.js";
import type { Limits, Measured, Outcome, Row } from "./results.js";
import { median, pairedRatio, type Sample, spreadOf } from "./statistics.js";
import type { Case, Precision, Workload } from "./workload.js";
import { limitCases } from "./workloads/limits.js";

export interface MeasureOptions {
  readonly lanes: readonly LaneName[];
  readonly peersFolder: string;
  /** The bundle, which a lane's process runs again. */
  readonly program: string;
  readonly rounds: number;
  /** Milliseconds that a repetition should last: quick calls are repeated within. */
  readonly repetition: number;
  /** Milliseconds that a lane may spend on one row: slow ones sit rounds out. */
  readonly budget: number;
  /** Fractions of the limits are of CPU time then, which other work on the machine does not change. */
  readonly isSoftware: boolean;
  /** Milliseconds after which a lane that does not answer is given up. */
  readonly patience: number;
  readonly isChosen: (chosen: Case) => boolean;
  readonly say: (line: string) => void;
}

export interface MeasuredWorkload {
  readonly rows: readonly Row[];
  readonly limits: Limits;
  /** Of the lanes that opened, and why others did not. */
  readonly versions: ReadonlyMap<string, string>;
  readonly missing: ReadonlyMap<string, string>;
}

interface Entry {
  readonly client: LaneClient;
  readonly chosen: Case;
  readonly subject: Subject;
  readonly lane: string;
  readonly difference: number;
  readonly samples: Sample[];
  warmedUp?: WarmedUp;
  failure?: string;
}

/**
 * Measures a workload in fresh processes, one a library: results are compared first; then each round runs every case of every
 * library once, so that what else the machine does meets all of them.
 */
export async function measureWorkload(
  workload: Workload,
  options: MeasureOptions,
): Promise<MeasuredWorkload> {
  const cases = workload.cases.filter(options.isChosen);
  const versions = new Map<string, string>();
  const missing = new Map<string, string>();
  const clients: LaneClient[] = [];
  try {
    for (const lane of options.lanes) {
      const isNeeded = cases.some(
        (chosen) =>
          chosen.on[lane.library] &&
          chosen.precisions.some((precision) => takesOn(lane, workload, chosen, precision)),
      );
      if (!isNeeded) continue;
      const client = new LaneClient(lane, options.program, options.patience);
      clients.push(client);
      try {
        versions.set(lane.name, (await client.open(options.peersFolder)).version);
      } catch (error) {
        missing.set(lane.name, (error as Error).message);
      }
    }
    const open = clients.filter(({ name }) => versions.has(name));
    const own = open.find(({ name }) => name === ours.name);
    if (!own) throw new Error(missing.get(ours.name) ?? "our own lane did not open");
    const limits = await Promise.all(
      limitCases(options.isSoftware).map((limit) => limitEntry(own, limit)),
    );
    const { entries, refused } = await prepareAll(workload, cases, open, options.say);
    await runRounds([...limits, ...entries], options);
    const rates = limitsOf(limits, options.isSoftware);
    return {
      rows: rowsOf(workload, cases, entries, refused, rates),
      limits: rates,
      versions,
      missing,
    };
  } finally {
    await Promise.all(clients.map((client) => client.close()));
  }
}

async function limitEntry(client: LaneClient, chosen: Case): Promise<Entry> {
  const subject: Subject = { workload: limitsName, name: chosen.name, precision: "float32" };
  await client.prepare(subject);
  return { client, chosen, subject, lane: client.name, difference: 0, samples: [] };
}

interface PreparedEntries {
  readonly entries: readonly Entry[];
  /** Lanes that cannot be timed, by row and lane. */
  readonly refused: ReadonlyMap<string, Outcome>;
}

async function prepareAll(
  workload: Workload,
  cases: readonly Case[],
  clients: readonly LaneClient[],
  say: (line: string) => void,
): Promise<PreparedEntries> {
  const entries: Entry[] = [];
  const refused = new Map<string, Outcome>();
  for (const chosen of cases) {
    // Our float32 result is what the others are compared with.
    let reference: Float32Array | undefined;
    for (const precision of chosen.precisions) {
      const subject: Subject = { workload: workload.name, name: chosen.name, precision };
      for (const client of clients) {
        const refuse = (outcome: Outcome, why: string) => {
          refused.set(keyOf(subject, client.name), outcome);
          if (outcome.status !== "absent")
            say(`  ${chosen.name} ${precision}: ${client.name} ${why}`);
        };
        if (!takesOn(client.lane, workload, chosen, precision)) {
          refuse({ status: "absent" }, "");
          continue;
        }
        try {
          const { result } = await client.prepare(subject);
          if (!result) {
            refuse({ status: "absent" }, "");
            continue;
          }
          if (client.name === ours.name && precision === "float32") reference = result;
          const apart = Math.max(
            reference ? difference(result, reference) : 0,
            chosen.expected
              ? differenceFromDefinition(result, (index) => chosen.expected?.(index) as number)
              : 0,
          );
          if (!(apart <= chosen.tolerance[precision])) {
            const limit = chosen.tolerance[precision];
            refuse(
              { status: "wrong", difference: apart },
              `differs by ${apart.toPrecision(2)}, where ${limit} is allowed: not timed`,
            );
            continue;
          }
          const { name: lane } = client;
          entries.push({ client, chosen, subject, lane, difference: apart, samples: [] });
        } catch (error) {
          const reason = (error as Error).message;
          refuse({ status: "failed", reason }, `failed: ${reason}`);
        }
      }
    }
  }
  return { entries, refused };
}

/** What plain JavaScript needs seconds for would tell nothing new. */
const mostOfJavaScript = 1e9;

/**
 * Peers have no bfloat16. In float16 none trains (jax-js has no gradient of a cast), tfjs does nothing, and jax-js nothing in
 * WebAssembly.
 */
function takesOn(
  { name, library, backend }: LaneName,
  { level }: Workload,
  chosen: Case,
  precision: Precision,
): boolean {
  if (name === ours.name || library === "torch") return true;
  if (backend === "cpu" && chosen.cost(precision).operations > mostOfJavaScript) return false;
  if (precision === "float32") return true;
  if (precision === "bfloat16" || level !== "operation" || library === "tfjs") return false;
  return library !== "jax" || backend === "webgpu";
}

async function runRounds(entries: readonly Entry[], options: MeasureOptions): Promise<void> {
  const { rounds, repetition, budget } = options;
  const attempt = async (entry: Entry, work: () => Promise<void>): Promise<void> => {
    if (entry.failure !== undefined) return;
    try {
      await work();
    } catch (error) {
      entry.failure = (error as Error).message;
      options.say(`  ${entry.chosen.name}: ${entry.lane} failed: ${entry.failure}`);
    }
  };
  for (const entry of entries)
    await attempt(entry, async () => {
      entry.warmedUp = await entry.client.warmUp(entry.subject);
    });
  for (let round = 0; round < rounds; round++)
    for (const entry of entries)
      await attempt(entry, async () => {
        const estimate = entry.warmedUp?.milliseconds as number;
        const calls = callsFor(estimate, repetition);
        if (!takesPart(round, rounds, Math.floor(budget / (estimate * calls)))) return;
        entry.samples.push({ round, ...(await entry.client.time(entry.subject, calls)) });
      });
}

const callsFor = (estimate: number, repetition: number): number =>
  Math.min(100, Math.max(1, Math.round(repetition / estimate)));

/** Whether a lane that can afford so many rounds, at least two, runs in this one: they are spread evenly. */
export const takesPart = (round: number, rounds: number, affordable: number): boolean => {
  const wanted = Math.min(rounds, Math.max(2, affordable));
  return Math.floor(((round + 1) * wanted) / rounds) > Math.floor((round * wanted) / rounds);
};

function limitsOf(entries: readonly Entry[], isSoftware: boolean): Limits {
  const isCpuTime =
    isSoftware &&
    entries.every(({ samples }) => samples.every((s) => s.cpuMilliseconds !== undefined));
  const rate = (name: string, amount: "bytes" | "operations"): number => {
    const entry = entries.find(({ chosen }) => chosen.name.startsWith(name));
    if (!entry || entry.samples.length === 0)
      throw new Error(`the machine's limit "${name}" could not be measured: ${entry?.failure}`);
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

const keyOf = ({ name, precision }: Subject, lane: string): string =>
  `${name}/${precision}/${lane}`;

function rowsOf(
  workload: Workload,
  cases: readonly Case[],
  entries: readonly Entry[],
  refused: ReadonlyMap<string, Outcome>,
  limits: Limits,
): Row[] {
  const outcomes = new Map(refused);
  for (const entry of entries) {
    const { subject, chosen } = entry;
    const own = entries.find(
      (other) =>
        other.lane === ours.name &&
        other.chosen === chosen &&
        other.subject.precision === subject.precision,
    );
    outcomes.set(keyOf(subject, entry.lane), outcomeOf(entry, own, limits));
  }
  return cases.flatMap((chosen) =>
    chosen.precisions.map((precision): Row => {
      const subject: Subject = { workload: workload.name, name: chosen.name, precision };
      const lanes = [...outcomes.keys()]
        .filter((key) => key.startsWith(keyOf(subject, "")))
        .map((key) => [key.slice(keyOf(subject, "").length), outcomes.get(key) as Outcome]);
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
        outcomes: Object.fromEntries(lanes),
      };
    }),
  );
}

function outcomeOf(entry: Entry, own: Entry | undefined, limits: Limits): Outcome {
  const { samples, warmedUp, chosen, subject, failure } = entry;
  if (failure !== undefined || !warmedUp || samples.length === 0)
    return { status: "failed", reason: failure ?? "it was never timed" };
  const milliseconds = spreadOf(samples.map((sample) => sample.milliseconds));
  const { operations, bytes } = chosen.cost(subject.precision);
  const least =
    1000 * Math.max(operations / limits.operationsPerSecond, bytes / limits.copyBytesPerSecond);
  const cpu = samples.flatMap(({ cpuMilliseconds }) => cpuMilliseconds ?? []);
  const measured: Measured = {
    status: "measured",
    milliseconds,
    ...(cpu.length > 0 && { cpuMilliseconds: spreadOf(cpu) }),
    hostMicroseconds: warmedUp.hostMicroseconds,
    callsPerStep: warmedUp.callsPerStep,
    peakBytes: warmedUp.peakBytes,
    ...(warmedUp.facts && { facts: warmedUp.facts }),
    ...(warmedUp.kernels && { kernels: warmedUp.kernels }),
    difference: entry.difference,
    ...(own && own.samples.length > 0 && { ratio: pairedRatio(own.samples, samples) }),
    fractionOfLimit: least / median(timesOf(samples, limits.isCpuTime)),
    ...(chosen.items && {
      itemsPerSecond: (chosen.items.count * 1000) / milliseconds.median,
    }),
  };
  return measured;
}
