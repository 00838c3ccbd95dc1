import { type ChildProcess, spawn } from "node:child_process";
import { cpSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { Generator } from "@halfstep/tensor";
import { type RankSettings, type StepSamples, sampleCount } from "./rank-settings.js";

/** The way to start ranks of a bundled program. */
export interface Launching {
  /** The launcher and its arguments, for so many ranks. */
  readonly launch: (ranks: number) => readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** The bundle of training-rank.ts. */
  readonly program: string;
}

/** The end of a job. */
interface EndedJob {
  readonly code: number | null;
  readonly stderr: string;
  /** `performance.now()` when its launcher had ended. */
  readonly endedAt: number;
}

/** Runs a training of so many ranks; one rank needs no launcher. `onStarted` is called with its process. */
function runRanks(
  { launch, env, program }: Launching,
  ranks: number,
  settings: RankSettings,
  onStarted: (child: ChildProcess) => void = () => {},
): Promise<EndedJob> {
  const [command = "", ...args] = [
    ...(ranks > 1 ? launch(ranks) : []),
    ...[process.execPath, program, JSON.stringify(settings)],
  ];
  const child = spawn(command, args, {
    stdio: ["ignore", "ignore", "pipe"],
    env: { ...process.env, ...env },
  });
  let stderr = "";
  child.stderr?.on("data", (chunk) => {
    stderr += chunk;
  });
  onStarted(child);
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, stderr, endedAt: performance.now() }));
  });
}

/** What the ranks of a job have noted: the samples of each step. */
function notedSteps(notes: string, ranks: number): ReadonlyMap<number, readonly number[]> {
  const steps = new Map<number, number[]>();
  for (let rank = 0; rank < ranks; rank++) {
    const file = join(notes, `samples-${rank}`);
    if (!existsSync(file)) continue;
    for (const line of readFileSync(file, "utf8").split("\n").slice(0, -1)) {
      const { step, samples }: StepSamples = JSON.parse(line);
      steps.set(step, [...(steps.get(step) ?? []), ...samples]);
    }
  }
  return steps;
}

/** Resolves when every rank of a job has recorded so many steps, or when the job is over. */
async function stepsRecorded(
  notes: string,
  { ranks, steps, isOver = () => false }: { ranks: number; steps: number; isOver?: () => boolean },
): Promise<void> {
  const files = Array.from({ length: ranks }, (_, rank) => join(notes, `samples-${rank}`));
  const recorded = (file: string): number =>
    existsSync(file) ? readFileSync(file, "utf8").split("\n").length - 1 : 0;
  while (!isOver() && !files.every((file) => recorded(file) >= steps)) await wait(5);
}

/** Resolves when no rank of a job is left: a rank that saves may outlive its launcher by a moment. */
async function allGone(notes: string, ranks: number): Promise<void> {
  const processes = Array.from({ length: ranks }, (_, rank) => processOf(notes, rank));
  while (processes.some((each) => existsSync(`/proc/${each}`))) await wait(5);
}

/** The process number of a rank. */
const processOf = (notes: string, rank: number): number =>
  Number(readFileSync(join(notes, `process-${rank}`), "utf8"));

/** One kill, and what became of the job. */
export interface Kill {
  readonly ranks: number;
  readonly killed: number;
  /** From the kill to the end of the launcher and of all ranks. */
  readonly seconds: number;
  readonly code: number | null;
  /** Whether the launcher names the killed rank. */
  readonly isNamed: boolean;
  /** The last lines of survivors, each of which names its rank. */
  readonly survivors: readonly string[];
  /** The last step that a rank of the killed job has recorded. */
  readonly lastStep: number;
  /** The step from which the job went on. */
  readonly resumedAt: number;
  /** Whether the job that went on with a rank less has seen each sample of each epoch once. */
  readonly isWhole: boolean;
  /** Whether the job that went on with as many ranks has written the bytes of an unbroken run. */
  readonly isEqual: boolean;
}

/** Options of killing ranks. */
export interface KillingOptions extends Launching {
  /** A folder for all runs. */
  readonly directory: string;
  readonly ranks: number;
  readonly kills: number;
  /** Default "SIGKILL". */
  readonly signal?: NodeJS.Signals;
  /** Of the ranks that are killed, and the moments. */
  readonly seed: number;
  readonly onKill?: (kill: Kill) => void;
}

const epochs = 12;
const batchSize = 4;

/**
 * Kills a random rank at a random step of training, again and again; then lets the job go on from its newest checkpoint, with a rank less
 * and with as many.
 */
export async function killRanks(options: KillingOptions): Promise<readonly Kill[]> {
  const { directory, ranks, kills, signal = "SIGKILL", seed, onKill } = options;
  const random = new Generator(seed);
  const settingsIn = (name: string): RankSettings => ({
    ...{ out: join(directory, name, "run"), notes: join(directory, name, "notes") },
    ...{ batchSize, epochs },
  });
  const unbroken = settingsIn("unbroken");
  const whole = await runRanks(options, ranks, unbroken);
  if (whole.code !== 0) throw new Error(`the unbroken run failed: ${whole.stderr}`);
  const steps = notedSteps(unbroken.notes, ranks).size;
  const done: Kill[] = [];
  for (let attempt = 0; attempt < kills; attempt++) {
    const settings = settingsIn(`killed-${attempt}`);
    const killed = Math.floor(random.uniform() * ranks);
    // Ranks that are told to stop go on for some steps.
    const lastStep = 1 + Math.floor(random.uniform() * 0.8 * steps);
    let killedAt = 0;
    let isOver = false;
    const [job] = await Promise.all([
      runRanks(options, ranks, settings).finally(() => {
        isOver = true;
      }),
      stepsRecorded(settings.notes, { ranks, steps: lastStep, isOver: () => isOver }).then(() => {
        killedAt = performance.now();
        const found = processOf(settings.notes, killed);
        if (existsSync(`/proc/${found}`)) process.kill(found, signal);
      }),
    ]);
    if (job.code === 0) throw new Error("a job that lost a rank ended as if it had none");
    await allGone(settings.notes, ranks);
    const seconds = (performance.now() - killedAt) / 1000;
    const broken = notedSteps(settings.notes, ranks);
    const goOn = async (name: string, count: number) => {
      const next = { ...settingsIn(`${name}-${attempt}`), resume: "auto" };
      cpSync(settings.out, next.out, { recursive: true });
      const { code, stderr } = await runRanks(options, count, next);
      if (code !== 0) throw new Error(`a resumed run failed: ${stderr}`);
      const steps = notedSteps(next.notes, count);
      return { out: next.out, steps, resumedAt: Math.min(...steps.keys()) - 1 };
    };
    const fewer = await goOn("fewer", ranks - 1);
    const equal = await goOn("equal", ranks);
    const kill: Kill = {
      ...{ ranks, killed, code: job.code, resumedAt: fewer.resumedAt, seconds },
      lastStep: Math.max(...broken.keys()),
      isNamed: new RegExp(`rank ${killed} .*exited on signal 9`).test(job.stderr),
      survivors: job.stderr.match(/^.*rank \d+: .*$/gm) ?? [],
      isWhole: isEachOnce(
        new Map([...[...broken].filter(([step]) => step <= fewer.resumedAt), ...fewer.steps]),
      ),
      isEqual: leftIn(equal.out) === leftIn(unbroken.out),
    };
    done.push(kill);
    onKill?.(kill);
  }
  return done;
}

/** What became of a job whose link was cut. */
export interface Cut extends EndedJob {
  /** From the cut to the end of the launcher. */
  readonly seconds: number;
}

/** Trains on several hosts, and cuts a link when all ranks have recorded a step. */
export async function cutLink(
  launching: Launching,
  {
    ranks,
    cut,
    ...settings
  }: Omit<RankSettings, "batchSize" | "epochs"> & {
    readonly ranks: number;
    readonly cut: () => void;
  },
): Promise<Cut> {
  let cutAt = 0;
  const [job] = await Promise.all([
    // So many epochs that it does not end before.
    runRanks(launching, ranks, { batchSize, epochs: 10_000, ...settings }),
    stepsRecorded(settings.notes, { ranks, steps: 1 }).then(() => {
      cutAt = performance.now();
      cut();
    }),
  ]);
  return { ...job, seconds: (job.endedAt - cutAt) / 1000 };
}

/** Whether the steps of a training have each sample once in each epoch. */
function isEachOnce(steps: ReadonlyMap<number, readonly number[]>): boolean {
  const perEpoch = steps.size / epochs;
  return Array.from({ length: epochs }, (_, epoch) =>
    Array.from({ length: perEpoch }, (_, i) => steps.get(epoch * perEpoch + i + 1) ?? [])
      .flat()
      .sort((a, b) => a - b),
  ).every((seen) => seen.length === sampleCount && seen.every((sample, place) => sample === place));
}

/** The log of a run, and the hash of its parameters. */
const leftIn = (out: string): string =>
  readFileSync(join(out, "metrics.jsonl"), "utf8") +
  JSON.parse(readFileSync(join(out, "summary.json"), "utf8")).runs[0].parameterSha256;
