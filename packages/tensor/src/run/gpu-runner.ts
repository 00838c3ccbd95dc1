import { type Device, type PreparedPass, sizeClass } from "@halfstep/device";
import { bytesFor, decodeElements, encodeElements } from "@halfstep/formats/dtypes";
import type { Plan, PlanBuffer } from "../plan/plan.js";
import type { Memory } from "../record/storage.js";
import { OpenRun, type RunSteps } from "./open-run.js";
import type { Invocation, Runner } from "./runner.js";
import { SharedSlots } from "./shared-slots.js";
import { StepsInFlight } from "./steps-in-flight.js";
import { type DeviceRates, hardwareRates, PlanSubmits, RunClock } from "./submits.js";

/** A plan with its slots, ready to be replayed. */
interface Instance {
  readonly slots: readonly GPUBuffer[];
  readonly submits: PlanSubmits;
  /** Every runtime scalar of every launch. */
  readonly scalars: readonly RuntimeScalar[];
  /** Passes by the residents that they bind, most recent last. */
  readonly passes: BoundPass[];
}

interface RuntimeScalar {
  /** Position of the launch in the plan. */
  readonly index: number;
  readonly name: string;
  /** The launch of the recording that has the value, and its name there. */
  readonly source: { readonly launch: number; readonly name: string };
}

interface BoundPass {
  readonly residents: readonly Memory[];
  readonly pass: PreparedPass;
  /** The runtime scalars as they were written last, in the plan's order. */
  readonly values: Float64Array;
}

/** Passes that are kept: a plan runs with few combinations of residents. */
const keptPasses = 8;

/** Options of {@link gpuRunner}. */
export interface GpuRunnerOptions {
  /** Steps that may be in flight while the host continues, at least 1. Default 4. */
  readonly maxInFlight?: number | undefined;
  /**
   * Minimum rates of the device, which keep its submits short. Default: a slow integrated GPU, and undefined for a software driver:
   * systems do not reset it, so its submits may be long.
   */
  readonly rates?: DeviceRates | undefined;
}

/**
 * Replays plans on a GPU: one submit for each recording unless it is long, without new buffers and bind groups in the steady state.
 */
export function gpuRunner(device: Device, options: GpuRunnerOptions = {}): Runner {
  const { maxInFlight = 4 } = options;
  const { rates = device.capabilities.adapter.isFallback ? undefined : hardwareRates } = options;
  const instances = new WeakMap<Plan, Instance>();
  const slots = new SharedSlots(device);
  const clock = new RunClock();
  const openRun = new OpenRun();
  const inFlight = new StepsInFlight(maxInFlight, async () => {
    const reached = clock.fence();
    await device.settled({ wait: "backpressure" });
    reached();
  });

  const assertWell = async (): Promise<void> => {
    // Waits for programs of earlier runs and their errors, but not for the GPU.
    await device.submitted();
    // The device may still be determining the cause; its next await rejects with the cause, not with a consequence.
    if (!device.failure) return;
    await device.settled({ wait: "background" });
    throw device.failure;
  };
  const instanceOf = (plan: Plan): Instance => {
    const keptBytes = plan.kept.reduce((sum, { bytes }) => sum + sizeClass(bytes), 0);
    let instance = instances.get(plan);
    if (instance) slots.requireRoom(keptBytes);
    else {
      const launches = plan.launches.map(({ launch }) => launch);
      instance = {
        slots: slots.take(plan.slots, keptBytes),
        submits: new PlanSubmits(launches, rates),
        scalars: plan.launches.flatMap(({ sources }, index) =>
          [...sources].map(([name, source]): RuntimeScalar => ({ index, name, source })),
        ),
        passes: [],
      };
      instances.set(plan, instance);
    }
    return instance;
  };

  const beginRun = (plan: Plan, invocation: Invocation): RunSteps => {
    const instance = instanceOf(plan);
    const pass = passFor(device, plan, instance, invocation);
    const kept = plan.kept.map(({ bytes }) => device.allocate(bytes));
    for (const [i, { data, binding }] of invocation.inputs.entries()) {
      const slot = plan.inputs[i];
      if (slot !== undefined)
        device.write(instance.slots[slot] as GPUBuffer, 0, encodeElements(data, binding.dtype));
    }
    const launches = plan.launches.length;
    let begun: number | undefined;
    /** Calls work that encodes the pass, in order with everything else, when its programs are compiled. */
    const enqueue = (work: () => void): void =>
      device.enqueue(
        () => {
          begun ??= clock.now();
          work();
        },
        pass.compile({ onCompile: invocation.onCompile }),
      );
    const encodePass = (commands: GPUCommandEncoder, from: number, to: number): void => {
      const encoder = commands.beginComputePass();
      pass.encode(encoder, from, to);
      encoder.end();
    };
    /** Encodes a range; where it is too long for one submit, only the last part is left to be submitted. */
    const encodeRange = (from: number, to: number): GPUCommandEncoder => {
      let start = from;
      for (const end of instance.submits.ends()) {
        if (end <= start || end >= to) continue;
        const commands = device.gpu.createCommandEncoder();
        encodePass(commands, start, end);
        device.submit([commands.finish()]);
        start = end;
      }
      const commands = device.gpu.createCommandEncoder();
      if (to > start) encodePass(commands, start, to);
      return commands;
    };
    return {
      launches,
      memoryOf: (buffer) => locate(buffer, instance.slots, invocation.residents),
      runRange: (from, to) => enqueue(() => device.submit([encodeRange(from, to).finish()])),
      finish(from) {
        enqueue(() => {
          if (from < launches || kept.length > 0) {
            const commands = encodeRange(from, launches);
            for (const [i, { slot, bytes }] of plan.kept.entries())
              commands.copyBufferToBuffer(
                instance.slots[slot] as GPUBuffer,
                0,
                kept[i] as GPUBuffer,
                0,
                Math.ceil(bytes / 4) * 4,
              );
            device.submit([commands.finish()]);
          }
          clock.ran(instance.submits, begun as number);
        });
        inFlight.submitted();
        return kept;
      },
      abandon() {
        for (const buffer of kept) device.release(buffer);
      },
    };
  };

  return {
    kind: "gpu",
    label: device.label,
    usesGpuBuffers: true,
    hardwareClass: device.capabilities.hardware.class,
    allocate: (bytes) => device.allocate(bytes, { zero: true }),
    release: (memory) => device.release(memory as GPUBuffer),
    write: ({ buffer, offset, dtype }, data) =>
      device.write(buffer as GPUBuffer, offset, encodeElements(data, dtype)),
    async read({ buffer, offset, length, dtype }, options) {
      const bytes = Math.ceil(bytesFor(dtype, length) / 4) * 4;
      const read = await device.read(buffer as GPUBuffer, offset, bytes, options);
      return decodeElements(read, dtype, length);
    },
    start: (plan, invocation) => openRun.open(() => beginRun(plan, invocation)),
    prepare: (plan, prepareOptions) =>
      device.prewarm(
        plan.launches.map(({ launch }) => launch),
        prepareOptions,
      ),
    forget(plans) {
      for (const plan of plans) {
        const instance = instances.get(plan);
        instances.delete(plan);
        for (const { pass } of instance?.passes ?? []) pass.destroy();
        for (const slot of instance?.slots ?? []) slots.release(slot);
      }
    },
    trim: () => device.trim(),
    async ready() {
      await assertWell();
      await inFlight.room();
    },
    assertWell,
  };
}

const locate = (
  { kind, index }: PlanBuffer,
  slots: readonly GPUBuffer[],
  residents: readonly Memory[],
): GPUBuffer => (kind === "slot" ? slots[index] : residents[index]) as GPUBuffer;

function passFor(
  device: Device,
  plan: Plan,
  { slots, scalars, passes }: Instance,
  { residents, scalar }: Invocation,
): PreparedPass {
  const known = passes.findLastIndex((p) => p.residents.every((m, i) => m === residents[i]));
  const found = passes[known];
  if (found) {
    if (known < passes.length - 1) {
      passes.splice(known, 1);
      passes.push(found);
    }
    updateScalars(found, scalars, scalar);
    return found.pass;
  }
  const values = Float64Array.from(scalars, ({ source }) => scalar(source.launch, source.name));
  const own = plan.launches.map(({ launch }) => ({ ...launch.scalars }));
  for (const [i, { index, name }] of scalars.entries())
    (own[index] as Record<string, number>)[name] = values[i] as number;
  const pass = device.prepare(
    plan.launches.map(({ launch }, i) => ({
      ...launch,
      scalars: own[i] as Record<string, number>,
      bindings: launch.bindings.map((b) => ({ ...b, buffer: locate(b.buffer, slots, residents) })),
    })),
  );
  passes.push({ residents, pass, values });
  if (passes.length > keptPasses) passes.shift()?.pass.destroy();
  return pass;
}

/** Writes the runtime scalars that have changed; few change from one step to the next. */
function updateScalars(
  { pass, values }: BoundPass,
  scalars: readonly RuntimeScalar[],
  scalarOf: Invocation["scalar"],
): void {
  let updates: Map<number, Record<string, number>> | undefined;
  for (let i = 0; i < scalars.length; i++) {
    const { index, name, source } = scalars[i] as RuntimeScalar;
    const value = scalarOf(source.launch, source.name);
    if (Object.is(value, values[i])) continue;
    values[i] = value;
    updates ??= new Map();
    const changed = updates.get(index);
    if (changed) changed[name] = value;
    else updates.set(index, { [name]: value });
  }
  if (updates) pass.updateScalars(updates);
}
