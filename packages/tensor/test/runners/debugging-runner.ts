import type { KernelView } from "@halfstep/device";
import type { PlannedLaunch, PlanRun, Runner } from "@halfstep/tensor";

/** A launch that has run, and its results. */
export interface LoggedLaunch {
  /** The index of its run, from 0, and its position there. */
  readonly run: number;
  readonly launch: number;
  readonly kernel: string;
  /** The ops that it computes, with the paths of their modules. Empty where the runtime does not note its ops. */
  readonly site: string;
  readonly results: readonly { readonly name: string; readonly values: Promise<KernelView> }[];
}

/** A runner that logs each launch of another runner with its results. */
export interface DebuggingRunner {
  readonly runner: Runner;
  readonly log: readonly LoggedLaunch[];
}

/** Runs plans of another runner launch by launch. A read is queued behind each launch; readers of the log await it. */
export function debugging(inner: Runner): DebuggingRunner {
  const log: LoggedLaunch[] = [];
  let runs = 0;
  const resultsOf = (run: PlanRun, { launch }: PlannedLaunch): LoggedLaunch["results"] =>
    launch.bindings.flatMap((binding, b) => {
      const { name, access } = launch.kernel.bindings[b] ?? { name: "", access: "read" };
      if (access === "read") return [];
      const values = inner.read({ ...binding, buffer: run.memoryOf(binding.buffer) });
      // The run itself rejects if the device fails; the log need not be read.
      values.catch(() => undefined);
      return [{ name, values }];
    });
  const runner: Runner = {
    ...inner,
    label: `${inner.label}, debugged`,
    start(plan, invocation) {
      const run = inner.start(plan, invocation);
      const number = runs++;
      let at = 0;
      const runTo = (end: number): void => {
        for (const planned of plan.launches.slice(at, end)) {
          run.runTo(at + 1);
          log.push({
            ...{ run: number, launch: at++, kernel: planned.launch.kernel.name },
            site: siteOf(planned),
            results: resultsOf(run, planned),
          });
        }
        // The runner refuses invalid positions.
        run.runTo(end);
      };
      return {
        ...run,
        runTo,
        finish() {
          runTo(plan.launches.length);
          return run.finish();
        },
      };
    },
  };
  return { runner, log };
}

const siteOf = ({ note }: PlannedLaunch): string =>
  (note?.ops ?? []).map(({ module, op }) => (module ? `${module}.${op}` : op)).join(", ");

/** The first difference between two logs of equal plans. */
export interface Difference {
  readonly launch: LoggedLaunch;
  readonly result: string;
  readonly element: number;
  readonly expected: number;
  readonly found: number;
}

/**
 * The first launch whose results differ from those of the same launch in another log; undefined where there is none.
 */
export async function firstDifference(
  found: readonly LoggedLaunch[],
  expected: readonly LoggedLaunch[],
): Promise<Difference | undefined> {
  for (const [i, launch] of found.entries())
    for (const [r, { name, values }] of launch.results.entries()) {
      const numbers = await values;
      const right = (await expected[i]?.results[r]?.values) ?? [];
      const element = numbers.findIndex((value, e) => !Object.is(value, right[e]));
      if (element >= 0)
        return {
          ...{ launch, result: name, element },
          expected: right[element] as number,
          found: numbers[element] as number,
        };
    }
  return undefined;
}
