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
  /** A runner that nobody else uses. */
  create(): Runner | Promise<Runner>;
  /** Where memory can run out: a runner with room for so many bytes. */
  createWithBudget?(bytes: number): Runner | Promise<Runner>;
  /** Where runners can fail: one that works until `fail()` is called, after which its device is lost. */
  createFailing?(): Promise<{ readonly runner: Runner; fail(): void }>;
}

/** A test of the contract. Throws where the runner differs, naming how. */
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

/** What `work` throws or rejects with. Throws where it does neither. */
export async function refusal(what: string, work: () => unknown): Promise<unknown> {
  try {
    await work();
  } catch (error) {
    return error;
  }
  throw new Error(`${what}: expected an error, found none`);
}

/** The first `bytes` bytes of memory as words, whatever they stand for. */
export const wordsOf = (buffer: Memory, bytes: number): Binding<Memory> => ({
  buffer,
  offset: 0,
  length: bytes / 4,
  dtype: "uint32",
});

/** A plan as a step ran it, to be run again. */
export interface Captured {
  readonly plan: Plan;
  readonly invocation: Invocation;
  /** What the residents held before the step. */
  readonly residents: readonly Uint32Array[];
  /** Keeps the memory of the residents. */
  readonly owner: readonly unknown[];
}

/** Runs a step of a program, and returns its plan and what it was run with. */
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

/** The same runner, whose runs begin in another way. */
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
  ready: () => runner.ready(),
  assertWell: () => runner.assertWell(),
});

/** Begins a captured run again, after its residents are what they were. */
export function restart(runner: Runner, { plan, invocation, residents }: Captured): PlanRun {
  for (const [i, words] of residents.entries())
    runner.write(wordsOf(invocation.residents[i] as Memory, words.byteLength), words);
  return runner.start(plan, invocation);
}

/** The same run by references on the CPU, and the runner that has its memory. */
export function referenceOf({ plan, invocation, residents }: Captured): [Runner, PlanRun] {
  const runner = cpuRunner();
  const copies = residents.map((words) => {
    const copy = runner.allocate(words.byteLength);
    runner.write(wordsOf(copy, words.byteLength), words);
    return copy;
  });
  return [runner, runner.start(plan, { ...invocation, residents: copies })];
}

/** What the memory of kept values holds, which is given back. */
export async function takeKept(
  runner: Runner,
  { plan }: Captured,
  kept: readonly Memory[],
): Promise<readonly KernelView[]> {
  const words = plan.kept.map(({ bytes }, i) => runner.read(wordsOf(kept[i] as Memory, bytes)));
  for (const memory of kept) runner.release(memory);
  return Promise.all(words);
}
