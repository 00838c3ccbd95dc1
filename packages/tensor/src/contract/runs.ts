import type { Binding, CompileProgress, KernelView } from "@halfstep/device";
import type { PlanBuffer, PlannedLaunch } from "../plan/plan.js";
import type { PlanRun, Runner } from "../run/runner.js";
import { cpuRuntime, Runtime } from "../tensor/runtime.js";
import type { Tensor } from "../tensor/tensor.js";
import {
  type ContractTest,
  capture,
  referenceOf,
  refusal,
  restart,
  same,
  takeKept,
} from "./harness.js";
import { chain, type Program } from "./programs.js";

export const cutsAnywhere =
  (program: Program): ContractTest =>
  async ({ create }) => {
    const runner = await create();
    const captured = await capture(runner, program);
    const expected = await takeKept(runner, captured, restart(runner, captured).finish());
    const { length } = captured.plan.launches;
    for (let end = 0; end <= length; end++) {
      const run = restart(runner, captured);
      run.runTo(end);
      run.runTo(end);
      const found = await takeKept(runner, captured, run.finish());
      for (const [i, words] of expected.entries())
        same(`kept value ${i}, cut before launch ${end}`, found[i] ?? [], words);
    }
  };

/** Results of a launch, while its run is open. */
const resultsOf = (
  runner: Runner,
  run: PlanRun,
  { launch }: PlannedLaunch,
): Promise<KernelView>[] =>
  launch.bindings
    .filter((_, b) => launch.kernel.bindings[b]?.access !== "read")
    .map((binding: Binding<PlanBuffer>) =>
      runner.read({ ...binding, buffer: run.memoryOf(binding.buffer) }),
    );

export const showsValues =
  (program: Program): ContractTest =>
  async ({ create }) => {
    const runner = await create();
    const captured = await capture(runner, program);
    const [reference, expectedRun] = referenceOf(captured);
    const run = restart(runner, captured);
    const { launches } = captured.plan;
    // Nothing is awaited before the end: a read returns the contents at the time of the call.
    const shown = launches.map((planned, i) => {
      run.runTo(i + 1);
      expectedRun.runTo(i + 1);
      return [resultsOf(runner, run, planned), resultsOf(reference, expectedRun, planned)] as const;
    });
    for (const memory of run.finish()) runner.release(memory);
    for (const [i, [found, expected]] of shown.entries())
      for (const [r, values] of expected.entries())
        same(
          `result ${r} of launch ${i}, ${launches[i]?.launch.kernel.name}`,
          (await found[r]) ?? [],
          await values,
        );
  };

export const takesValuesBetween: ContractTest = async ({ create }) => {
  const runner = await create();
  const captured = await capture(runner, chain, []);
  const { plan } = captured;
  const result = plan.launches[0]?.launch.bindings.at(-1) as Binding<PlanBuffer>;
  const run = restart(runner, captured);
  run.runTo(1);
  runner.write({ ...result, buffer: run.memoryOf(result.buffer) }, [5, 6, 7, 8]);
  const [words] = await takeKept(runner, captured, run.finish());
  same("sums of what was written between two launches", floats(words), [6, 7, 8, 9]);
};

export const opensOneRun: ContractTest = async ({ create }) => {
  const runner = await create();
  const captured = await capture(runner, chain, []);
  const run = restart(runner, captured);
  run.runTo(1);
  await refusal("a second run beside an open one", () => restart(runner, captured));
  await refusal("a launch that has run", () => run.runTo(0));
  await refusal("a launch that the plan lacks", () => run.runTo(99));
  run.abandon();
  const next = restart(runner, captured);
  await refusal("a launch of a run that was abandoned", () => run.runTo(2));
  const [words] = await takeKept(runner, captured, next.finish());
  same("a run after one that was abandoned", floats(words), [3, 5, 7, 9]);
  await refusal("the end of a run that has ended", () => next.finish());
  await refusal("memory of a run that has ended", () =>
    next.memoryOf(captured.plan.launches[0]?.launch.bindings[0]?.buffer as PlanBuffer),
  );
};

export const prepares =
  (program: Program): ContractTest =>
  async ({ create }) => {
    const runtime = new Runtime(await create(), {});
    const step = program.open(runtime);
    await refusal("preparing with an aborted signal", () =>
      runtime.prepare(step, { signal: AbortSignal.abort() }),
    );
    const told: CompileProgress[] = [];
    await runtime.prepare(step, { onCompile: (progress) => told.push(progress) });
    for (const [i, { compiled, total }] of told.entries())
      same("compiled programs and their total", [compiled, total], [i, told.length - 1]);
    await runtime.prepare(step, {
      onCompile({ kernel }) {
        throw new Error(`${kernel} was compiled a second time`);
      },
    });
    const expected = await valuesOf(await stepOnce(cpuRuntime(), program));
    const found = await valuesOf(await runtime.step(step));
    for (const [i, values] of expected.entries())
      same(`result ${i} after preparing`, found[i] ?? [], values);
  };

const stepOnce = (runtime: Runtime, program: Program): Promise<Tensor[]> =>
  runtime.step(program.open(runtime));

const valuesOf = (tensors: readonly Tensor[]): Promise<KernelView[]> =>
  Promise.all(tensors.map((each) => each.toArray()));

const floats = (words: KernelView | undefined): Float32Array =>
  new Float32Array(Uint32Array.from(words ?? []).buffer);
