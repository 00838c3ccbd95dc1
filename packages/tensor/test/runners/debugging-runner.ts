import type { KernelView } from "@halfstep/device";
import type { PlannedLaunch, PlanRun, Runner } from "@halfstep/tensor";

/** A launch that has run, and what it left. */
export interface LoggedLaunch {
  /** The run that it belongs to, from 0, and its position there. */
  readonly run: number;
  readonly launch: number;
  readonly kernel: string;
  /** The ops that it computes, with the paths of their modules. Empty where the runtime does not note its ops. */
  readonly site: string;
  readonly results: readonly { readonly name: string; readonly values: Promise<KernelView> }[];
}

/** A runner that logs each launch of another one with the numbers that it leaves. */
export interface DebuggingRunner {
  readonly runner: Runner;
  readonly log: readonly LoggedLaunch[];
}

/** Runs plans of another runner launch by launch. Reads are asked for behind each launch, and awaited by whoever looks at the log. */
export function debugging(inner: Runner): DebuggingRunner {
  const log: LoggedLaunch[] = [];
  let runs = 0;
  const resultsOf = (run: PlanRun, { launch }: PlannedLaunch): LoggedLaunch["results"] =>
    launch.bindings.flatMap((binding, b) => {
      const { name, access } = launch.kernel.bindings[b] ?? { name: "", access: "read" };
      if (access === "read") return [];
      const values = inner.read({ ...binding, buffer: run.memoryOf(binding.buffer) });
      // The run tells of a device that fails meanwhile; nobody has to look at the log.
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
        // What is left is for the runner to refuse.
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

/** Where two logs of equal plans first differ. */
export interface Difference {
  readonly launch: LoggedLaunch;
  readonly result: string;
  readonly element: number;
  readonly expected: number;
  readonly found: number;
}

/** The first launch that left other numbers than the same launch of another log; undefined where there is none. */
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
