import { type Device, type PreparedPass, sizeClass } from "@halfstep/device";
import { bytesFor, decodeElements, encodeElements } from "@halfstep/formats/dtypes";
import type { Plan, PlanBuffer, PlannedLaunch } from "../plan/plan.js";
import type { Memory } from "../record/storage.js";
import { GpuExchange } from "./gpu-exchange.js";
import { HostCalls } from "./host-calls.js";
import { LostMemory } from "./lost-memory.js";
import { OpenRun, type RunSteps } from "./open-run.js";
import type { Invocation, Runner } from "./runner.js";
import { Segments } from "./segments.js";
import { SharedSlots } from "./shared-slots.js";
import { StepsInFlight } from "./steps-in-flight.js";
import { type DeviceRates, hardwareRates, PlanSubmits, RunClock } from "./submits.js";

/** A plan with its slots, ready to be replayed. */
interface Instance {
  readonly slots: readonly GPUBuffer[];
  /** The launches of the plan that the device runs. */
  readonly launches: readonly PlannedLaunch[];
  /** Those of its host ops, in order. */
  readonly exchanges: readonly GpuExchange[];
  readonly submits: PlanSubmits;
  /** Every runtime scalar of every launch. */
  readonly scalars: readonly RuntimeScalar[];
  /** Passes by the residents that they bind, most recent last. */
  readonly passes: BoundPass[];
}

interface RuntimeScalar {
  /** Index of the launch among those of the device. */
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
  const calls = new HostCalls();
  const lost = new LostMemory();
  /** Settles when the programs of all runs so far are compiled, or do not compile. */
  let compiling: Promise<unknown> = Promise.resolve();
  const inFlight = new StepsInFlight(maxInFlight, async () => {
    const reached = clock.fence();
    await device.settled({ wait: "backpressure" });
    reached();
  });

  const assertWell = async (): Promise<void> => {
    // Waits for programs of earlier runs and their errors, but neither for the GPU nor for functions of the host.
    if (calls.isBusy) await compiling;
    else await device.submitted();
    if (device.failure) {
      // The device may still be determining the cause; its next await rejects with the cause, not with a consequence.
      await device.settled({ wait: "background" });
      throw device.failure;
    }
    if (calls.failure) throw calls.failure;
  };
  const instanceOf = (plan: Plan): Instance => {
    const keptBytes = plan.kept.reduce((sum, { bytes }) => sum + sizeClass(bytes), 0);
    let instance = instances.get(plan);
    if (instance) slots.requireRoom(keptBytes);
    else {
      const launches = deviceLaunches(plan);
      instance = {
        slots: slots.take(plan.slots, keptBytes),
        launches,
        exchanges: plan.hostOps.map((op) => new GpuExchange(device, plan, op)),
        submits: new PlanSubmits(
          launches.map(({ launch }) => launch),
          rates,
        ),
        scalars: launches.flatMap(({ sources }, index) =>
          [...sources].map(([name, source]): RuntimeScalar => ({ index, name, source })),
        ),
        passes: [],
      };
      instances.set(plan, instance);
    }
    return instance;
  };

  const beginRun = (plan: Plan, invocation: Invocation): RunSteps => {
    if (calls.failure) throw calls.failure;
    const instance = instanceOf(plan);
    const pass = passFor(device, instance, invocation);
    const kept = plan.kept.map(({ bytes }) => allocate(bytes));
    for (const [i, { data, binding }] of invocation.inputs.entries()) {
      const slot = plan.inputs[i];
      if (slot !== undefined)
        device.write(instance.slots[slot] as GPUBuffer, 0, encodeElements(data, binding.dtype));
    }
    const memoryOf = (buffer: PlanBuffer): GPUBuffer =>
      locate(buffer, instance.slots, invocation.residents);
    const exchangeOf = (op: Plan["hostOps"][number]): GpuExchange =>
      instance.exchanges[plan.hostOps.indexOf(op)] as GpuExchange;
    let begun: number | undefined;
    const encodePass = (commands: GPUCommandEncoder, from: number, to: number): void => {
      const encoder = commands.beginComputePass();
      pass.encode(encoder, from, to);
      encoder.end();
    };
    /** Encodes a range of the plan; where it is too long for one submit, only the last part is left to be submitted. */
    const encodeRange = (from: number, to: number): GPUCommandEncoder => {
      let [start, last] = [from, to].map((position) => deviceIndex(plan, position)) as [
        number,
        number,
      ];
      for (const end of instance.submits.ends()) {
        if (end <= start || end >= last) continue;
        const commands = device.gpu.createCommandEncoder();
        encodePass(commands, start, end);
        device.submit([commands.finish()]);
        start = end;
      }
      const commands = device.gpu.createCommandEncoder();
      if (last > start) encodePass(commands, start, last);
      return commands;
    };
    let pending: Promise<void> | undefined;
    /** Resolves when the programs are compiled, which all segments wait for; undefined where none is missing. */
    const programs = (): Promise<void> | undefined => {
      if (pending) return pending;
      pending = pass.compile({ onCompile: invocation.onCompile });
      if (pending) {
        const settled = pending.then(
          () => {},
          () => {},
        );
        compiling = Promise.all([compiling, settled]);
        void settled.then(() => {
          pending = undefined;
        });
      }
      return pending;
    };
    const segments = new Segments(
      plan,
      calls,
      plan.hostOps.map(({ recorded }) => invocation.hostFunction(recorded)),
      {
        enqueue(work, ready, dropped) {
          const compiled = programs();
          compiled?.catch(dropped);
          device.enqueue(
            () => {
              begun ??= clock.now();
              work();
            },
            compiled && ready ? Promise.all([compiled, ready]) : (compiled ?? ready),
          );
        },
        run(from, to, op) {
          const commands = encodeRange(from, to);
          if (op) exchangeOf(op).copyOut(commands, memoryOf);
          device.submit([commands.finish()]);
        },
        operands(op) {
          const exchange = exchangeOf(op);
          device.counters.exchangeWaits++;
          return { arrived: exchange.arrived(), arrays: exchange.arrays };
        },
        store: (op) => exchangeOf(op).store(memoryOf),
      },
    );
    const end = (from: number): void => {
      if (from < plan.launches.length || kept.length > 0) {
        const commands = encodeRange(from, plan.launches.length);
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
      invocation.onEnd?.(false);
    };
    return {
      launches: plan.launches.length,
      memoryOf,
      runRange: (from, to) => segments.runRange(from, to),
      finish(from) {
        segments.finish(from, end, () => {
          if (!calls.failure) return;
          lost.add(kept, calls.failure);
          invocation.onEnd?.(true);
        });
        inFlight.submitted();
        return kept;
      },
      abandon() {
        for (const buffer of kept) device.release(buffer);
      },
    };
  };
  const allocate = (bytes: number, options?: { readonly zero: boolean }): GPUBuffer => {
    const buffer = device.allocate(bytes, options);
    lost.reused(buffer);
    return buffer;
  };

  return {
    kind: "gpu",
    label: device.label,
    usesGpuBuffers: true,
    hardwareClass: device.capabilities.hardware.class,
    maxBindingBytes: device.capabilities.limits.maxStorageBufferBindingSize,
    allocate: (bytes) => allocate(bytes, { zero: true }),
    release: (memory) => device.release(memory as GPUBuffer),
    write: ({ buffer, offset, dtype }, data) =>
      device.write(buffer as GPUBuffer, offset, encodeElements(data, dtype)),
    async read({ buffer, offset, length, dtype }, options) {
      const bytes = Math.ceil(bytesFor(dtype, length) / 4) * 4;
      const read = await device.read(buffer as GPUBuffer, offset, bytes, options);
      lost.assertHas(buffer);
      return decodeElements(read, dtype, length);
    },
    start: (plan, invocation) => openRun.open(() => beginRun(plan, invocation)),
    prepare: (plan, prepareOptions) =>
      device.prewarm(
        deviceLaunches(plan).map(({ launch }) => launch),
        prepareOptions,
      ),
    forget(plans) {
      for (const plan of plans) {
        const instance = instances.get(plan);
        instances.delete(plan);
        for (const { pass } of instance?.passes ?? []) pass.destroy();
        for (const exchange of instance?.exchanges ?? []) exchange.destroy();
        for (const slot of instance?.slots ?? []) slots.release(slot);
      }
    },
    trim: () => device.trim(),
    async ready() {
      await assertWell();
      await inFlight.room();
    },
    assertWell,
    exchanged: () => calls.ended(),
  };
}

/** The launches of a plan that are not carried out by the host. */
const deviceLaunches = ({ launches, hostOps }: Plan): readonly PlannedLaunch[] =>
  hostOps.length === 0
    ? launches
    : launches.filter((_, i) => !hostOps.some(({ position }) => position === i));

/** The index of the first launch of the device from a position of the plan on. */
const deviceIndex = ({ hostOps }: Plan, position: number): number =>
  position - hostOps.filter((op) => op.position < position).length;

const locate = (
  { kind, index }: PlanBuffer,
  slots: readonly GPUBuffer[],
  residents: readonly Memory[],
): GPUBuffer => (kind === "slot" ? slots[index] : residents[index]) as GPUBuffer;

function passFor(
  device: Device,
  { slots, launches, scalars, passes }: Instance,
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
  const own = launches.map(({ launch }) => ({ ...launch.scalars }));
  for (const [i, { index, name }] of scalars.entries())
    (own[index] as Record<string, number>)[name] = values[i] as number;
  const pass = device.prepare(
    launches.map(({ launch }, i) => ({
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
