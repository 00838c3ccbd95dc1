import type { Device } from "@halfstep/device";
import { cpuRuntime, gpuRuntime, type Runtime } from "@halfstep/tensor";
import type { TrainConfig } from "../train/config.js";
import { Lane } from "../train/lane.js";
import { Loop } from "../train/loop.js";
import { type SetupId, setupOf } from "../train/setups.js";
import { moonsTask } from "../train/tasks/moons.js";

/** Setups whose bits are compared. */
export const measuredSetups: readonly SetupId[] = ["float32", "float16", "bfloat16"];

/** Steps before the parameters are hashed, and steps of the benchmark after that. */
export const hashedSteps = 20;
const timedSteps = 100;

/** A program, and what its compilation took. */
interface CompiledProgram {
  readonly kernel: string;
  readonly ms: number;
}

/** What one setup does on a device. */
export interface Measurement {
  readonly setup: SetupId;
  /** First digits of the SHA-256 of all parameters after 20 steps. */
  readonly hash: string;
  readonly loss: number;
  /** The loss of the same 20 steps on the CPU. */
  readonly cpuLoss: number;
  /** The programs that this setup needed first, each compiled alone. Some drivers compile at the first step instead. */
  readonly compiled: readonly CompiledProgram[];
  /** Until the first step was done. */
  readonly firstStepMs: number;
  /** Mean of the steps after the hash. */
  readonly msPerStep: number;
}

/** What a device says of itself and what it was seen to do. Plain data, to be copied into an issue. */
export interface DeviceReport {
  readonly adapter: string;
  readonly browser: string;
  readonly tier: string;
  readonly subgroupSize: number;
  readonly isFallback: boolean;
  readonly hardware: object;
  readonly features: readonly string[];
  readonly limits: Readonly<Record<string, number>>;
  readonly programs: number;
  readonly measurements: readonly Measurement[];
}

const config: TrainConfig = {
  task: "moons",
  setups: measuredSetups,
  lr: 0.01,
  shrink: 0,
  gain: 0,
  scale: 16,
  seed: 0,
  compute: "auto",
};

/** Trains two moons in one setup on a device, and on the CPU for comparison. */
export async function measure(device: Device, setup: SetupId): Promise<Measurement> {
  const compiled = await compileAlone(device, setup);
  const own = await trained(gpuRuntime(device), setup, timedSteps);
  const cpu = await trained(cpuRuntime(), setup, 0);
  return { setup, ...own, compiled, cpuLoss: cpu.loss };
}

/** Compiles the programs of a step one after the other. */
async function compileAlone(device: Device, setup: SetupId): Promise<CompiledProgram[]> {
  using runtime = gpuRuntime(device);
  const loop = new Loop(runtime, setupOf(setup), config, moonsTask);
  const { launches } = runtime.plan(() => loop.record(0));
  const compiled: CompiledProgram[] = [];
  for (const { launch } of launches) {
    const [before, start] = [device.counters.pipelinesCreated, performance.now()];
    await device.prewarm([launch]);
    const ms = performance.now() - start;
    if (device.counters.pipelinesCreated > before)
      compiled.push({ kernel: launch.kernel.name, ms });
  }
  return compiled;
}

async function trained(runtime: Runtime, setup: SetupId, more: number) {
  const lane = new Lane(runtime, setupOf(setup), config, moonsTask);
  const start = performance.now();
  await lane.step();
  await lane.points();
  const firstStepMs = performance.now() - start;
  for (let step = 1; step < hashedSteps; step++) await lane.step();
  const points = await lane.points();
  // Pages that have a GPU have a SHA-256, too.
  const hash = (await lane.hash()) as string;
  const before = performance.now();
  for (let step = 0; step < more; step++) await lane.step();
  await lane.points();
  const msPerStep = (performance.now() - before) / Math.max(more, 1);
  lane.dispose();
  return { hash, loss: points.at(-1)?.loss as number, firstStepMs, msPerStep };
}

/** Whether the losses of a device and of the CPU differ by no more than the order of sums may cause. */
export const isClose = ({ loss, cpuLoss }: Measurement): boolean =>
  Math.abs(loss - cpuLoss) <= 0.01 * Math.abs(cpuLoss);
