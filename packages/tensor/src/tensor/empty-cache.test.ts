import { wrapDevice } from "@halfstep/device";
import { requestTestDevice } from "@halfstep/device/testing";
import { expect, test } from "vitest";
import { cpuRuntime, gpuRuntime, RecordingError, type Runtime } from "../index.js";

/** The sum of a large product, in memory that only the step needs. */
const compute = async (runtime: Runtime, size: number): Promise<number> => {
  using sum = await runtime.step(() => runtime.full([size, size], 2).mul(3).exp().log().sum());
  return sum.item();
};

test("what is live after emptyCache() are variables, and steps go on as before", async () => {
  const device = await wrapDevice((await requestTestDevice()).gpu);
  const runtime = gpuRuntime(device);
  const variable = runtime.variable(new Float32Array(64).fill(1), [64]);
  const before = device.memory.live;
  const first = [await compute(runtime, 256), await compute(runtime, 128)];
  expect(device.memory.live).toBeGreaterThan(before + 4 * 256 * 256);
  runtime.emptyCache();
  expect([device.memory.live, device.memory.pooled]).toEqual([before, 0]);
  expect([await compute(runtime, 256), await compute(runtime, 128)]).toEqual(first);
  expect(await variable.sum().item()).toBe(64);
  await expect(runtime.step(() => runtime.emptyCache())).rejects.toThrow(RecordingError);
});

test("on a CPU there is nothing to give back", async () => {
  const runtime = cpuRuntime();
  const first = await compute(runtime, 8);
  runtime.emptyCache();
  expect(await compute(runtime, 8)).toBe(first);
});
