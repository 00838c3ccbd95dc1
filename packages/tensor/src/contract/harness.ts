import type { Binding, KernelView } from "@halfstep/device";
import type { PassName } from "../plan/pipeline.js";
import type { Plan } from "../plan/plan.js";
import type { Memory } from "../record/storage.js";
import { cpuRunner } from "../run/cpu-runner.js";
import type { Invocation, PlanRun, Runner } from "../run/runner.js";
import { Runtime } from "../tensor/runtime.js";
import type { Program } from "./programs.js";

/** Runners under test. */
export interface RunnerSubject {
  /** The name in the cases. */
  readonly name: string;
  /** Makes a runner for one test alone. */
  create(): Runner | Promise<Runner>;
  /** Where memory can run out: makes a runner with a budget of so many bytes. */
  createWithBudget?(bytes: number): Runner | Promise<Runner>;
  /** Where runners can fail: makes one that works until `fail()` is called; then its device is lost. */
  createFailing?(): Promise<{ readonly runner: Runner; fail(): void }>;
}

/** A test of the contract. Throws an error that describes the difference. */
export type ContractTest = (subject: RunnerSubject) => Promise<void>;

/** Throws one error that names the first elements that differ. Bits are compared, so that −0 is not 0. */
export function same(what: string, found: ArrayLike<number>, expected: ArrayLike<number>): void {
  const wrong: string[] = [];
  for (let i = 0; i < Math.max(found.length, expected.length); i++)
    if (!Object.is(found[i], expected[i]))
      wrong.push(`element ${i}: expected ${expected[i]}, found ${found[i]}`);
  if (wrong.length > 0)
    throw new Error(
      `${what}: ${wrong.length} of ${expected.length} differ: ${wrong.slice(0, 5).join("; ")}`,
    );
}

/** The error that `work` throws or rejects with. Throws where it does neither. */
export async function refusal(what: string, work: () => unknown): Promise<unknown> {
  try {
    await work();
  } catch (error) {
    return error;
  }
  throw new Error(`${what}: expected an error, found none`);
}

/** The first `bytes` bytes of memory as words, regardless of dtype. */
export const wordsOf = (buffer: Memory, bytes: number): Binding<Memory> => ({
  buffer,
  offset: 0,
  length: bytes / 4,
  dtype: "uint32",
});

/** A plan and its invocation, captured from a step so that they can run again. */
export interface Captured {
  readonly plan: Plan;
  readonly invocation: Invocation;
  /** The contents of the residents before the step. */
  readonly residents: readonly Uint32Array[];
  /** References that keep the memory of the residents alive. */
  readonly owner: readonly unknown[];
}

/** Runs a step of a program, and returns its plan and invocation. */
export async function capture(
  runner: Runner,
  program: Program,
  passes?: readonly PassName[],
): Promise<Captured> {
  const runs: (Omit<Captured, "owner" | "residents"> & {
    readonly residents: readonly Promise<KernelView>[];
  })[] = [];
  const spy = startingWith(runner, (plan, invocation) => {
    const { residents } = invocation;
    runs.push({
      plan,
      invocation: withScalars(plan, invocation),
      residents: plan.residents.map((bytes, i) =>
        runner.read(wordsOf(residents[i] as Memory, bytes)),
      ),
    });
    return runner.start(plan, invocation);
  });
  const runtime = new Runtime(spy, passes ? { passes } : {});
  const step = program.open(runtime);
  const results = await runtime.step(step);
  const last = runs.at(-1);
  if (!last) throw new Error(`${program.name}: the runner was not asked to run anything`);
  return {
    ...last,
    residents: (await Promise.all(last.residents)) as Uint32Array[],
    owner: [runtime, step, results],
  };
}

/** A recording forgets its scalars when it closes. */
function withScalars(plan: Plan, invocation: Invocation): Invocation {
  const known = new Map<string, number>();
  for (const { sources } of plan.launches)
    for (const { launch, name } of sources.values())
      known.set(`${launch} ${name}`, invocation.scalar(launch, name));
  return { ...invocation, scalar: (launch, name) => known.get(`${launch} ${name}`) as number };
}

/** The same runner with another `start`. */
const startingWith = (runner: Runner, start: Runner["start"]): Runner => ({
  kind: runner.kind,
  label: runner.label,
  hardwareClass: runner.hardwareClass,
  usesGpuBuffers: runner.usesGpuBuffers,
  allocate: (bytes) => runner.allocate(bytes),
  release: (memory) => runner.release(memory),
  write: (binding, data) => runner.write(binding, data),
  read: (binding, options) => runner.read(binding, options),
  start,
  prepare: (plan, options) => runner.prepare(plan, options),
  forget: (plans) => runner.forget(plans),
  trim: () => runner.trim?.(),
  ready: () => runner.ready(),
  assertWell: () => runner.assertWell(),
});

/** Restores the residents of a captured run and begins it again. */
export function restart(runner: Runner, { plan, invocation, residents }: Captured): PlanRun {
  for (const [i, words] of residents.entries())
    runner.write(wordsOf(invocation.residents[i] as Memory, words.byteLength), words);
  return runner.start(plan, invocation);
}

/** The same run by references on the CPU, and the runner that owns its memory. */
export function referenceOf({ plan, invocation, residents }: Captured): [Runner, PlanRun] {
  const runner = cpuRunner();
  const copies = residents.map((words) => {
    const copy = runner.allocate(words.byteLength);
    runner.write(wordsOf(copy, words.byteLength), words);
    return copy;
  });
  return [runner, runner.start(plan, { ...invocation, residents: copies })];
}

/** Reads the memory of kept values and releases it. */
export async function takeKept(
  runner: Runner,
  { plan }: Captured,
  kept: readonly Memory[],
): Promise<readonly KernelView[]> {
  const words = plan.kept.map(({ bytes }, i) => runner.read(wordsOf(kept[i] as Memory, bytes)));
  for (const memory of kept) runner.release(memory);
  return Promise.all(words);
}
