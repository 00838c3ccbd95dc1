import { type Binding, SubmissionQueue } from "@halfstep/device";
import { decodeElements, encodeElements } from "@halfstep/formats/dtypes";
import { type CpuBuffer, type CpuTargetOptions, cpuTarget } from "@halfstep/kernels";
import { RecordingError } from "../errors.js";
import type { PlannedHostOp } from "../plan/host-ops.js";
import type { Plan, PlanBuffer, PlannedLaunch } from "../plan/plan.js";
import type { Memory } from "../record/storage.js";
import { CpuMemory } from "./cpu-memory.js";
import { HostCalls } from "./host-calls.js";
import { LostMemory } from "./lost-memory.js";
import { OpenRun, type RunSteps } from "./open-run.js";
import type { Invocation, Runner } from "./runner.js";
import { type HostOperands, hostMemoryOf, Segments } from "./segments.js";

/** Runs that may wait for functions of the host when another is recorded. */
const mostWaiting = 4;

/** Options of {@link cpuRunner}. */
export interface CpuRunnerOptions extends CpuTargetOptions {
  /**
   * Most bytes of variables, kept results and the memory of one step. What does not fit is refused with a `MemoryBudgetError` before anything
   * is allocated. Default: three quarters of what the process may use, and no limit in pages.
   */
  readonly memoryBudget?: number | undefined;
}

const total = (sizes: readonly number[]): number => sizes.reduce((sum, bytes) => sum + bytes, 0);

/** Runs plans with the kernels' CPU references: exact and slow, the reference for GPU results. */
export function cpuRunner({ memoryBudget, ...options }: CpuRunnerOptions = {}): Runner {
  const target = cpuTarget(options);
  const account = new CpuMemory((bytes) => target.allocate(bytes), memoryBudget);
  const isWide = target.arithmetic === "float64";
  const released = new WeakSet<Memory>();
  const openRun = new OpenRun();
  const held = (memory: Memory, what: string): CpuBuffer => {
    if (released.has(memory))
      throw new RecordingError(
        `${what} of memory that was released: release it after its last use`,
      );
    return memory as CpuBuffer;
  };
  const onCpu = (binding: Binding<Memory>, what: string): Binding<CpuBuffer> => ({
    ...binding,
    buffer: held(binding.buffer, what),
  });
  const calls = new HostCalls();
  const lost = new LostMemory();
  const queue = new SubmissionQueue((error) => calls.fail(error));
  const waiting: Promise<void>[] = [];
  const assertWell = async (): Promise<void> => {
    if (calls.failure) throw calls.failure;
  };

  const beginRun = (plan: Plan, invocation: Invocation): RunSteps => {
    if (calls.failure) throw calls.failure;
    account.requireRoom(total(plan.slots) + total(plan.kept.map(({ bytes }) => bytes)), isWide);
    const slots = plan.slots.map((bytes) => target.allocate(bytes));
    const memoryOf = ({ kind, index }: PlanBuffer): CpuBuffer =>
      (kind === "slot" ? slots[index] : invocation.residents[index]) as CpuBuffer;
    for (const [i, { data, binding }] of invocation.inputs.entries()) {
      const slot = plan.inputs[i];
      if (slot !== undefined) target.write({ ...binding, buffer: slots[slot] as CpuBuffer }, data);
    }
    // Recordings forget their scalars when they close, and launches behind a host op run later.
    const scalars = plan.launches.map((launch) => scalarsOf(launch, invocation));
    const arrays = new Map(plan.hostOps.map((op) => [op, hostMemoryOf(plan, op)]));
    const bound = ({ position }: PlannedHostOp, isWanted: (access: string) => boolean) => {
      const { kernel, bindings } = (plan.launches[position] as PlannedLaunch).launch;
      return bindings.flatMap((binding, b) => {
        const whole = { ...binding, buffer: memoryOf(binding.buffer) };
        return isWanted(kernel.bindings[b]?.access ?? "read") ? [{ b, whole }] : [];
      });
    };
    const run = (from: number, to: number): void => {
      for (let i = from; i < to; i++) {
        const { launch } = plan.launches[i] as PlannedLaunch;
        target.launch({
          ...launch,
          scalars: scalars[i] as Record<string, number>,
          bindings: launch.bindings.map((b) => ({ ...b, buffer: memoryOf(b.buffer) })),
        });
      }
    };
    const segments = new Segments(
      plan,
      calls,
      plan.hostOps.map(({ recorded }) => invocation.hostFunction(recorded)),
      {
        enqueue: (work, ready) => queue.add(work, ready),
        run,
        operands(op) {
          const own = arrays.get(op) as HostOperands;
          for (const { b, whole } of bound(op, (access) => access !== "write")) {
            const stored = encodeElements(target.read(whole), whole.dtype);
            own[b]?.set(new Uint8Array(stored.buffer, stored.byteOffset, stored.byteLength));
          }
          return { arrived: Promise.resolve(), arrays: own };
        },
        store(op) {
          for (const { b, whole } of bound(op, (access) => access !== "read")) {
            const bytes = arrays.get(op)?.[b];
            if (bytes) target.write(whole, decodeElements(bytes.buffer, whole.dtype, whole.length));
          }
        },
      },
    );
    return {
      launches: plan.launches.length,
      memoryOf,
      runRange: (from, to) => segments.runRange(from, to),
      finish(from) {
        const kept = plan.kept.map(({ bytes }) => account.allocate(bytes));
        segments.finish(
          from,
          (start) => {
            run(start, plan.launches.length);
            for (const [i, { slot, bytes }] of plan.kept.entries())
              copy(slots[slot] as CpuBuffer, kept[i] as CpuBuffer, bytes);
            invocation.onEnd?.(false);
          },
          () => {
            if (!calls.failure) return;
            lost.add(kept, calls.failure);
            invocation.onEnd?.(true);
          },
        );
        if (queue.isHeld) waiting.push(queue.called());
        return kept;
      },
      abandon() {},
    };
  };

  return {
    kind: "cpu",
    label: `CPU, ${target.arithmetic} arithmetic`,
    allocate(bytes) {
      account.requireRoom(bytes, isWide);
      return account.allocate(bytes);
    },
    release(given) {
      const buffer = held(given, "a second release");
      released.add(buffer);
      account.release(buffer);
    },
    write(binding, data) {
      const to = onCpu(binding, "a write");
      const values = queue.isHeld ? data.slice() : data;
      queue.add(() => target.write(to, values));
    },
    async read(binding) {
      const from = onCpu(binding, "a read");
      return queue.result(async () => {
        lost.assertHas(binding.buffer);
        return target.read(from);
      });
    },
    start: (plan, invocation) => openRun.open(() => beginRun(plan, invocation)),
    prepare: async (_, { signal } = {}) => signal?.throwIfAborted(),
    forget() {},
    async ready() {
      await assertWell();
      if (waiting.length >= mostWaiting) await waiting.shift();
    },
    assertWell,
    exchanged: () => calls.ended(),
  };
}

function copy(from: CpuBuffer, to: CpuBuffer, bytes: number): void {
  if (from.wide && to.wide) to.wide.set(from.wide.subarray(0, bytes));
  else new Uint8Array(to.bytes).set(new Uint8Array(from.bytes, 0, bytes));
}

/** The scalars of a launch in one run. */
function scalarsOf(
  { launch, sources }: PlannedLaunch,
  invocation: Invocation,
): Readonly<Record<string, number>> {
  if (sources.size === 0) return launch.scalars;
  const scalars: Record<string, number> = { ...launch.scalars };
  for (const [name, source] of sources)
    scalars[name] = invocation.scalar(source.launch, source.name);
  return scalars;
}
