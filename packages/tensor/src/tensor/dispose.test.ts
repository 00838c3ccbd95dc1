import { existsSync, readFileSync } from "node:fs";
import { type Device, wrapDevice } from "@halfstep/device";
import { requestTestDevice, type TestTier, testTiers } from "@halfstep/device/testing";
import { expect, test, vi } from "vitest";
import { ampPrimitives, ClosedTensorError, RecordingError, type Tensor } from "../index.js";
import { cpuRuntime, gpuRuntime, type Runtime } from "./runtime.js";

/** Memory maps of this process; 0 where the system does not tell. */
const mapCount = (): number =>
  existsSync("/proc/self/maps") ? readFileSync("/proc/self/maps", "utf8").split("\n").length : 0;

/** A device with its own account of memory: the garbage of other tests may be collected at any time. */
const openDevice = async (tier?: TestTier): Promise<Device> =>
  wrapDevice((await requestTestDevice()).gpu, tier === "packed" ? { tier } : {});

/** A few steps of a kind each, with variables, kept tensors and primitives of loss scaling. */
async function use(runtime: Runtime, kinds = 4): Promise<number> {
  const weight = runtime.variable([1, 2, 3, 4], [4], { requiresGrad: true });
  const state = ampPrimitives(runtime).allocate(8);
  let sum: Tensor | undefined;
  for (let kind = 1; kind <= kinds; kind++)
    sum = await runtime.step(() => {
      const loss = weight
        .reshape([4, 1])
        .mul(runtime.full([1, kind], 2))
        .sum();
      loss.backward();
      if (weight.grad) weight.assign(weight.add(weight.grad.mul(1 / 64)));
      weight.zeroGrad();
      return loss;
    });
  expect(state.isResident).toBe(true);
  return (sum as Tensor).item();
}

test.each(await testTiers())("dispose() releases all memory: %s", async (tier) => {
  const device = await openDevice(tier);
  const { live } = device.memory;
  const created = vi.spyOn(device.gpu, "createBuffer");
  const runtime = gpuRuntime(device);
  const found = await use(runtime);
  const read = runtime.variable([7], [1]).toArray();
  expect(device.memory.live).toBeGreaterThan(live);
  runtime.dispose();
  runtime.dispose();
  expect([device.memory.live, device.memory.pooled]).toEqual([live, 0]);
  // Earlier reads still finish.
  expect([...(await read)]).toEqual([7]);
  const uniforms = created.mock.results
    .map(({ value }) => value as GPUBuffer)
    .filter(({ usage }) => (usage & 0x40) !== 0);
  created.mockRestore();
  expect(uniforms.length).toBeGreaterThan(0);
  // A buffer that was destroyed is refused by its queue.
  device.gpu.pushErrorScope("validation");
  for (const buffer of uniforms) device.gpu.queue.writeBuffer(buffer, 0, new Uint32Array(1));
  expect(await device.gpu.popErrorScope()).not.toBeNull();
  expect(await use(gpuRuntime(device))).toBe(found);
  await device.settled();
});

test("hundreds of disposed runtimes leave no memory in use", async () => {
  const device = await openDevice();
  const first = gpuRuntime(device);
  await use(first);
  first.dispose();
  const [{ live }, maps] = [device.memory, mapCount()];
  const before = device.counters.snapshot();
  for (let i = 0; i < 200; i++) {
    using runtime = gpuRuntime(device);
    await use(runtime);
  }
  // Bind groups are destroyed by the garbage collector alone.
  expect(device.counters.since(before).bindGroupsCreated).toBeGreaterThan(2000);
  expect(mapCount() - maps).toBeLessThan(10_000);
  expect(device.memory.live).toBe(live);
});

test("nothing of a runtime that was disposed can be used", async () => {
  const runtime = cpuRuntime();
  const variable = runtime.variable([1, 2], [2]);
  const lazy = variable.add(1);
  await expect(runtime.step(() => runtime.dispose())).rejects.toThrow(RecordingError);
  runtime.dispose();
  expect(runtime.isDisposed).toBe(true);
  for (const work of [
    () => variable.add(1),
    () => lazy.add(1),
    () => runtime.variable([1], [1]),
    () => runtime.dryRun(() => 0),
    () => runtime.target.allocate(16),
  ])
    expect(work).toThrow(/disposed/);
  await expect(variable.toArray()).rejects.toThrow(ClosedTensorError);
  await expect(runtime.step(() => 0)).rejects.toThrow("this runtime was disposed");
  variable.dispose();
  lazy.dispose();
});

test("a plan that is removed from the cache releases its memory", async () => {
  const device = await requestTestDevice();
  using runtime = gpuRuntime(device);
  const x = runtime.variable(new Float32Array(4096).fill(1), [64, 64]);
  const step = async (kind: number): Promise<number> => {
    using sum = await runtime.step(() =>
      x
        .mul(runtime.full([kind, 1, 1], 2))
        .exp()
        .log()
        .sum(),
    );
    return sum.item();
  };
  expect((await step(80)) / (80 * 64 * 64 * 2)).toBeCloseTo(1, 5);
  const destroyed = vi.spyOn(GPUBuffer.prototype, "destroy");
  for (let kind = 1; kind < 70; kind++) await step(kind);
  // The scalars of six plans. Their slots serve others still.
  expect(destroyed).toHaveBeenCalledTimes(6);
  destroyed.mockRestore();
  expect((await step(80)) / (80 * 64 * 64 * 2)).toBeCloseTo(1, 5);
});
