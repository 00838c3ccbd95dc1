import { readFileSync } from "node:fs";

/** Milliseconds of CPU time since the process began. */
interface CpuTime {
  /** Of all threads: those of a software driver too. */
  readonly process: number;
  /** Of the thread that runs JavaScript; undefined where the system does not tell. */
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
 * CPU time of a call and of the wait for it, without what the main thread spent in the wait: there it only polls. What else the
 * machine does hardly changes it, unlike time on the wall. Undefined where the system does not tell.
 */
export function workOf(before: CpuTime, waiting: CpuTime, after: CpuTime): number | undefined {
  if (waiting.main === undefined || after.main === undefined) return undefined;
  return after.process - before.process - (after.main - waiting.main);
}
