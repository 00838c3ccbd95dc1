import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { nodeFlags } from "@halfstep/vitest/node-flags";
import { CheckpointFolder } from "../src/checkpoint/checkpoint-folder.js";
import { readCheckpoint } from "../src/checkpoint/read-checkpoint.js";
import { leftBehind } from "./resumable.js";
import type { ProcessSettings } from "./training-process.js";

/** What a process has left besides its folder. */
export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface StartOptions {
  readonly settings?: ProcessSettings;
  /** A program that starts the process: `["bash", "-c", "ulimit …; exec \"$0\" \"$@\""]`. */
  readonly through?: readonly string[];
  /** Called with all of stdout whenever there is more of it. */
  readonly onStdout?: (stdout: string, child: ChildProcess) => void;
}

/** Runs the bundled training process in a folder until it ends. */
export function runProcess(
  program: string,
  directory: string,
  { settings = {}, through = [], onStdout }: StartOptions = {},
): Promise<Ended> {
  const [command = "", ...args] = [
    ...through,
    process.execPath,
    ...nodeFlags,
    program,
    directory,
    JSON.stringify(settings),
  ];
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"] });
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (chunk) => {
    stdout += chunk;
    onStdout?.(stdout, child);
  });
  child.stderr.on("data", (chunk) => {
    stderr += chunk;
  });
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, signal) => resolve({ code, signal, stdout, stderr }));
  });
}

export interface TortureOptions {
  /** The bundle of training-process.ts. */
  readonly program: string;
  /** A folder for all runs. */
  readonly directory: string;
  readonly kills: number;
  /** Uniform numbers from [0, 1). */
  readonly random: () => number;
  readonly onKill?: (kills: number) => void;
}

export interface TortureResult {
  readonly kills: number;
  /** Runs that came to their end, killed or not. */
  readonly runs: number;
  /** Checkpoints that were read after the kills. */
  readonly checkpoints: number;
  readonly unreadable: readonly string[];
  /** Runs whose log or last checkpoint is not that of a run that was never killed. */
  readonly different: readonly string[];
  /** Processes that found the lock of a killed one, and took it over. */
  readonly takenOver: number;
  /** Kills that came while a checkpoint was being written or removed. */
  readonly whileSaving: number;
}

/**
 * Kills training again and again, half of the time at a random moment and half of the time before a random operation of its
 * file system, and lets it go on from its newest checkpoint.
 */
export async function torture({
  program,
  directory,
  kills,
  random,
  onKill,
}: TortureOptions): Promise<TortureResult> {
  const path = (name: string): string => {
    mkdirSync(join(directory, name), { recursive: true });
    return join(directory, name);
  };
  let readyAt = 0;
  const onReady = (): void => {
    readyAt ||= performance.now();
  };
  const whole = await runProcess(program, path("unbroken"), { onStdout: onReady });
  if (whole.code !== 0) throw new Error(`the unbroken run failed: ${whole.stderr}`);
  const duration = performance.now() - readyAt;
  const expected = JSON.stringify(leftBehind(path("unbroken")));
  const result = {
    ...{ kills: 0, runs: 0, checkpoints: 0, whileSaving: 0, takenOver: 0 },
    ...{ unreadable: [] as string[], different: [] as string[] },
  };
  const finish = (run: string): void => {
    result.runs++;
    if (JSON.stringify(leftBehind(path(run))) !== expected) result.different.push(run);
  };
  let run = "killed-0";
  for (;;) {
    const isLast = result.kills === kills;
    const isTimed = random() < 0.5;
    const delay = random() * duration;
    let timer: NodeJS.Timeout | undefined;
    const ended = await runProcess(program, path(run), {
      ...(!isLast && !isTimed && { settings: { killAt: 1 + Math.floor(random() * 120) } }),
      onStdout: (_, child) => {
        if (!isLast && isTimed) timer ??= setTimeout(() => child.kill("SIGKILL"), delay);
      },
    });
    clearTimeout(timer);
    result.takenOver += Number(ended.stderr.includes("which is gone: taken over"));
    if (ended.signal !== "SIGKILL") {
      if (ended.code !== 0) throw new Error(`a resumed run failed: ${ended.stderr}`);
      finish(run);
      run = `killed-${result.runs}`;
      if (isLast) return result;
      continue;
    }
    result.kills++;
    onKill?.(result.kills);
    const folder = new CheckpointFolder(join(path(run), "checkpoints"));
    for (const checkpoint of await folder.list()) {
      result.checkpoints++;
      await readCheckpoint(checkpoint).catch((error) => result.unreadable.push(String(error)));
    }
    result.whileSaving += Number(isMidSave(folder.directory));
  }
}

const isMidSave = (checkpoints: string): boolean =>
  existsSync(checkpoints) &&
  readdirSync(checkpoints).some((name) => /\.(partial|removed)$/.test(name));
