import { DeviceLostError, GpuError, MemoryBudgetError } from "@halfstep/device";
import type { Plan, PlanRun, Runner } from "@halfstep/tensor";

/**
 * What goes wrong. `lost`: the device is gone, and what it is given afterwards does nothing. `submit`: the commands of the run are
 * refused, which is known when something is awaited. `memory`: there is no room for the run.
 */
export type RunFailure = "lost" | "submit" | "memory";

/** A runner that works until it is told to fail. */
export interface FailingRunner {
  readonly runner: Runner;
  /** Runs that were begun. */
  readonly runs: number;
  /** Loses the device now. */
  lose(): void;
  /** Makes a run fail, by its number from 1. */
  failAt(run: number, failure: RunFailure): void;
  /** Makes the next read fail, and no other. */
  failNextRead(): void;
}

/** A device that fails on command: another runner, as long as nothing is wrong. */
export function failing(inner: Runner): FailingRunner {
  const failures = new Map<number, RunFailure>();
  let failure: Error | undefined;
  let runs = 0;
  let isReadFailing = false;
  const lose = (): void => {
    failure ??= new DeviceLostError(inner.label, "unknown", "told to be lost");
  };
  const assertWell = async (): Promise<void> => {
    if (failure) throw failure;
    await inner.assertWell();
  };
  const runner: Runner = {
    ...inner,
    label: `${inner.label}, failing`,
    write(binding, data) {
      if (!failure) inner.write(binding, data);
    },
    async read(binding, options) {
      if (failure) throw failure;
      if (isReadFailing) {
        isReadFailing = false;
        throw new GpuError("internal", "a read was told to fail");
      }
      return inner.read(binding, options);
    },
    start(plan, invocation) {
      const what = failures.get(++runs);
      if (what === "memory") throw new MemoryBudgetError(2 ** 40, 0, 2 ** 30);
      if (what === "lost") lose();
      const run = inner.start(plan, invocation);
      if (what === "submit") failure ??= new GpuError("validation", "a submit was told to fail");
      return failure ? nothingDone(run, plan) : run;
    },
    async prepare(plan, options) {
      await assertWell();
      await inner.prepare(plan, options);
    },
    async ready() {
      await assertWell();
      await inner.ready();
    },
    assertWell,
  };
  /** A run whose launches do nothing: what it keeps is memory like any other. */
  const nothingDone = (run: PlanRun, { kept }: Plan): PlanRun => ({
    ...run,
    runTo() {},
    finish() {
      run.abandon();
      return kept.map(({ bytes }) => inner.allocate(bytes));
    },
  });
  return {
    runner,
    get runs() {
      return runs;
    },
    lose,
    failAt: (run, what) => failures.set(run, what),
    failNextRead() {
      isReadFailing = true;
    },
  };
}
