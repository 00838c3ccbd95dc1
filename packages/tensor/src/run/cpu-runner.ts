import type { Binding } from "@halfstep/device";
import { type CpuBuffer, type CpuTargetOptions, cpuTarget } from "@halfstep/kernels";
import { RecordingError } from "../errors.js";
import type { PlanBuffer } from "../plan/plan.js";
import type { Memory } from "../record/storage.js";
import { OpenRun } from "./open-run.js";
import type { Runner } from "./runner.js";

/** Runs plans with the kernels' CPU references: exact and slow, the reference for GPU results. */
export function cpuRunner(options: CpuTargetOptions = {}): Runner {
  const target = cpuTarget(options);
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
  return {
    kind: "cpu",
    label: `CPU, ${target.arithmetic} arithmetic`,
    allocate: (bytes) => target.allocate(bytes),
    release: (memory) => {
      released.add(held(memory, "a second release"));
    },
    write: (binding, data) => target.write(onCpu(binding, "a write"), data),
    async read(binding) {
      return target.read(onCpu(binding, "a read"));
    },
    start: (plan, invocation) =>
      openRun.open(() => {
        const slots = plan.slots.map((bytes) => target.allocate(bytes));
        const memoryOf = ({ kind, index }: PlanBuffer): CpuBuffer =>
          (kind === "slot" ? slots[index] : invocation.residents[index]) as CpuBuffer;
        for (const [i, { data, binding }] of invocation.inputs.entries()) {
          const slot = plan.inputs[i];
          if (slot !== undefined)
            target.write({ ...binding, buffer: slots[slot] as CpuBuffer }, data);
        }
        const runRange = (from: number, to: number): void => {
          for (const { launch, sources } of plan.launches.slice(from, to)) {
            const scalars: Record<string, number> = { ...launch.scalars };
            for (const [name, source] of sources)
              scalars[name] = invocation.scalar(source.launch, source.name);
            target.launch({
              ...launch,
              scalars,
              bindings: launch.bindings.map((b) => ({ ...b, buffer: memoryOf(b.buffer) })),
            });
          }
        };
        return {
          launches: plan.launches.length,
          memoryOf,
          runRange,
          finish(from) {
            runRange(from, plan.launches.length);
            return plan.kept.map(({ slot, bytes }) => copyOf(slots[slot] as CpuBuffer, bytes));
          },
          abandon() {},
        };
      }),
    prepare: async (_, { signal } = {}) => signal?.throwIfAborted(),
    forget() {},
    async ready() {},
    async assertWell() {},
  };

  function copyOf(from: CpuBuffer, bytes: number): CpuBuffer {
    const to = target.allocate(bytes);
    if (from.wide && to.wide) to.wide.set(from.wide.subarray(0, bytes));
    else new Uint8Array(to.bytes).set(new Uint8Array(from.bytes, 0, bytes));
    return to;
  }
}
