import { autocast } from "@halfstep/autocast";
import { type Device, DeviceLostError, MemoryBudgetError, ShaderError } from "@halfstep/device";
import { requestDevice } from "@halfstep/device/node";
import { requestTestDevice } from "@halfstep/device/testing";
import { defineKernel } from "@halfstep/kernels";
import { describe, expect, test, vi } from "vitest";
import { crossEntropy, gpuRuntime, linear, type Runtime, type Tensor } from "../src/index.js";

// Rules 2, 14, 16 and 17 of the semantics of recordings, on a GPU.

const numbers = (length: number, seed: number): Float32Array =>
  Float32Array.from({ length }, (_, i) => Math.sin(seed + i * 12.9898) * 0.5);

/** A training step of a small network, which keeps its loss. Its peak is taken once all its gradients exist. */
function trainer(runtime: Runtime, hidden = 64) {
  const first = runtime.variable(numbers(hidden * 16, 1), [hidden, 16], { requiresGrad: true });
  const second = runtime.variable(numbers(4 * hidden, 2), [4, hidden], { requiresGrad: true });
  const parameters = [first, second];
  return (seed: number, batch: number, beforeEnd = (): void => {}): Promise<Tensor> =>
    runtime.step(() => {
      const x = runtime.tensor(numbers(batch * 16, seed), [batch, 16]);
      const labels = runtime.tensor(
        Uint32Array.from({ length: batch }, (_, i) => (i + seed) % 4),
        [batch],
      );
      const loss = autocast({ dtype: "float16" }, () =>
        crossEntropy(linear(linear(x, first).tanh(), second), labels),
      );
      loss.mul(1024).backward();
      for (const p of parameters) {
        if (p.grad) p.assign(p.sub(p.grad.mul((0.1 + seed / 100) / 1024)));
        p.zeroGrad();
      }
      beforeEnd();
      return loss;
    });
}

describe("the steady state (14, 16)", () => {
  test("of training creates nothing, submits once a step, and never waits for a result", async () => {
    const device = await requestTestDevice();
    const step = trainer(gpuRuntime(device));
    for (let warm = 0; warm < 4; warm++) (await step(warm, 8)).dispose();
    const before = device.counters.snapshot();
    const steps = 6;
    for (let i = 0; i < steps; i++) (await step(10 + i, 8)).dispose();
    const { buffersCreated, bindGroupsCreated, pipelinesCreated, submits, hostWaits, reads } =
      device.counters.since(before);
    expect({ buffersCreated, bindGroupsCreated, pipelinesCreated, hostWaits, reads }).toEqual({
      buffersCreated: 0,
      bindGroupsCreated: 0,
      pipelinesCreated: 0,
      hostWaits: 0,
      reads: 0,
    });
    expect(submits).toBe(steps);
    expect(device.counters.since(before).backpressureWaits).toBe(steps / 2);
  });

  test("holds while a few results are kept and read late", async () => {
    const device = await requestTestDevice();
    const step = trainer(gpuRuntime(device));
    const losses: Tensor[] = [];
    const run = async (seed: number): Promise<void> => {
      losses.push(await step(seed, 8));
      if (losses.length > 3) losses.shift()?.dispose();
    };
    for (let i = 0; i < 6; i++) await run(i);
    const before = device.counters.snapshot();
    for (let i = 0; i < 4; i++) await run(i);
    const { buffersCreated, bindGroupsCreated, hostWaits } = device.counters.since(before);
    expect([buffersCreated, bindGroupsCreated, hostWaits]).toEqual([0, 0, 0]);
    const values = await Promise.all(losses.map((loss) => loss.item()));
    expect(values.every((value) => value > 0.5 && value < 3)).toBe(true);
    expect(device.counters.since(before).hostWaits).toBe(3);
  });
});

test("a step never waits for itself; every other one sets a fence (2)", async () => {
  const device = await requestTestDevice();
  const asked = vi.spyOn(device.gpu.queue, "onSubmittedWorkDone");
  const step = trainer(gpuRuntime(device));
  const before = device.counters.snapshot();
  const waits: number[] = [];
  for (let i = 0; i < 5; i++) {
    (await step(i, 8)).dispose();
    waits.push(device.counters.since(before).backpressureWaits);
  }
  expect(waits).toEqual([0, 0, 1, 1, 2]);
  expect(asked).toHaveBeenCalledTimes(2);
  expect(device.counters.since(before).hostWaits).toBe(0);
  asked.mockRestore();
});

describe("memory (14)", () => {
  const open = (memoryBudget?: number): Promise<Device> =>
    requestDevice(memoryBudget === undefined ? {} : { memoryBudget });

  test("the peak of a plan is what the pool allocates, and a budget below it refuses the step", async () => {
    const device = await open();
    const runtime = gpuRuntime(device);
    let live = 0;
    const loss = await trainer(runtime)(1, 300, () => {
      live = device.memory.live;
    });
    const peak = runtime.lastPlan?.statistics.peakBytes as number;
    expect(peak).toBeGreaterThan(65_536);
    expect(device.memory.live - live).toBe(peak);
    loss.dispose();
    device.destroy();

    const exact = await open(live + peak);
    await (await trainer(gpuRuntime(exact))(1, 300)).item();
    exact.destroy();

    const tight = await open(live + peak - 1);
    const tightRuntime = gpuRuntime(tight);
    const step = trainer(tightRuntime);
    let before = 0;
    const refused = step(1, 300, () => {
      before = tight.memory.live;
    });
    await expect(refused).rejects.toThrow(MemoryBudgetError);
    await expect(refused).rejects.toThrow(/use a smaller batch/);
    expect(tight.memory.live).toBe(before);
    expect(await (await step(1, 100)).item()).toBeGreaterThan(0.5);
    tight.destroy();
  });
});

describe("failures (17)", () => {
  test("a kernel that does not compile rejects with its name, and fails the runtime", async () => {
    const device = await requestDevice();
    const runtime = gpuRuntime(device);
    const typo = defineKernel({
      name: "typo",
      bindings: [{ name: "x", access: "readwrite" }],
      body: () => "@compute @workgroup_size(1) fn main() { store_x(0u, vec4f(nothing)); }",
      workgroups: () => [1, 1, 1],
      reference() {},
    });
    const v = runtime.variable([1, 2, 3, 4], [4]);
    const step = runtime.step(() => {
      runtime.target.launch({ kernel: typo, bindings: [v.operand()], scalars: {} });
      return 0;
    });
    await expect(step).rejects.toThrow(ShaderError);
    await expect(step).rejects.toThrow(/kernel "typo" .*does not compile.*nothing/s);
    await expect(step).rejects.toHaveProperty("recording", expect.any(Number));
    await expect(runtime.step(() => 1)).rejects.toThrow(ShaderError);
    await expect(v.toArray()).rejects.toThrow(ShaderError);
    device.destroy();
  });

  test("a lost device rejects the step and whatever comes after it", async () => {
    const device = await requestDevice();
    const runtime = gpuRuntime(device);
    const step = trainer(runtime);
    const loss = await step(1, 8);
    device.gpu.destroy();
    const outcomes = await Promise.allSettled([step(2, 8), loss.item()]);
    expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    for (const outcome of outcomes)
      expect((outcome as PromiseRejectedResult).reason).toBeInstanceOf(DeviceLostError);
    await expect(step(3, 8)).rejects.toThrow(DeviceLostError);
  });

  test("a launch with storage that its kernel does not take drops the step", async () => {
    const device = await requestTestDevice();
    const runtime = gpuRuntime(device);
    const v = runtime.variable([1], [1]);
    const floats = defineKernel({
      name: "floats",
      bindings: [{ name: "x", access: "readwrite", dtypes: ["float32"] }],
      body: () => "@compute @workgroup_size(1) fn main() {}",
      workgroups: () => [1, 1, 1],
      reference() {},
    });
    const half = runtime.variable([1], [1], { dtype: "float16" });
    const live = device.memory.live;
    const step = runtime.step(() => {
      v.assign(v.add(1));
      runtime.target.launch({ kernel: floats, bindings: [half.operand()], scalars: {} });
      return v.mul(2);
    });
    await expect(step).rejects.toThrow(/binding "x" of kernel "floats" is float16/);
    expect(await v.item()).toBe(1);
    expect(device.memory.live - live).toBeLessThanOrEqual(
      runtime.lastPlan?.statistics.peakBytes ?? 0,
    );
    const next = await runtime.step(() => v.mul(2));
    expect(await next.item()).toBe(2);
  });
});
