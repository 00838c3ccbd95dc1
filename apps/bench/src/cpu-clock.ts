import { readFileSync } from "node:fs";

/** Milliseconds of CPU time since the process began. */
interface CpuTime {
  /** Of all threads: those of a software driver too. */
  readonly process: number;
  /** CPU time of the thread that runs JavaScript; undefined where the system does not report it. */
  readonly main: number | undefined;
}

export function cpuTime(): CpuTime {
  const { user, system } = process.cpuUsage();
  return { process: (user + system) / 1000, main: mainThread() };
}

/** Linux alone tells, in nanoseconds. */
function mainThread(): number | undefined {
  try {
    const text = readFileSync(`/proc/self/task/${process.pid}/schedstat`, "utf8");
    return Number(text.split(" ", 1)[0]) / 1e6;
  } catch {
    return undefined;
  }
}

/**
 * CPU time of a call and of the wait for it, without the time of the main thread during the wait, in which it only polls.
 * Unlike wall time, CPU time hardly depends on other load of the machine. Undefined where the system does not report it.
 */
export function workOf(before: CpuTime, waiting: CpuTime, after: CpuTime): number | undefined {
  if (waiting.main === undefined || after.main === undefined) return undefined;
  return after.process - before.process - (after.main - waiting.main);
}
