import type { Binding } from "@halfstep/device";
import { type CpuBuffer, type CpuTargetOptions, cpuTarget } from "@halfstep/kernels";
import type { PlanBuffer } from "../plan/plan.js";
import type { Memory } from "../record/storage.js";
import type { Runner } from "./runner.js";

/** Interprets plans with the kernels' references: exact, slow, and the referee of the GPU. */
export function cpuRunner(options: CpuTargetOptions = {}): Runner {
  const target = cpuTarget(options);
  const onCpu = (binding: Binding<Memory>): Binding<CpuBuffer> => binding as Binding<CpuBuffer>;
  return {
    kind: "cpu",
    label: `CPU, ${target.arithmetic} arithmetic`,
    allocate: (bytes) => target.allocate(bytes),
    release() {},
    write: (binding, data) => target.write(onCpu(binding), data),
    async read(binding) {
      return target.read(onCpu(binding));
    },
    run(plan, invocation) {
      const slots = plan.slots.map((bytes) => target.allocate(bytes));
      const locate = ({ kind, index }: PlanBuffer): CpuBuffer =>
        (kind === "slot" ? slots[index] : invocation.residents[index]) as CpuBuffer;
      for (const [i, { data, binding }] of invocation.inputs.entries()) {
        const slot = plan.inputs[i];
        if (slot !== undefined)
          target.write({ ...binding, buffer: slots[slot] as CpuBuffer }, data);
      }
      for (const { launch, sources } of plan.launches) {
        const scalars: Record<string, number> = { ...launch.scalars };
        for (const [name, source] of sources)
          scalars[name] = invocation.scalar(source.launch, source.name);
        target.launch({
          ...launch,
          scalars,
          bindings: launch.bindings.map((b) => ({ ...b, buffer: locate(b.buffer) })),
        });
      }
      return plan.kept.map(({ slot, bytes }) => copyOf(slots[slot] as CpuBuffer, bytes));
    },
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
