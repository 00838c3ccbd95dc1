import type { Kernel, Launch } from "@halfstep/device";
import { requestTestDevice } from "@halfstep/device/testing";
import { expect, test } from "vitest";
import { gpuRuntime, type Tensor } from "../index.js";
import { estimatedMilliseconds, softwareRates, submitEnds } from "./submits.js";

const launch = (elements: number, operations?: number): Launch<null> => ({
  kernel: {
    ...(operations !== undefined && { operations: () => operations }),
  } as Partial<Kernel> as Kernel,
  bindings: [{ buffer: null, offset: 0, length: elements, dtype: "float32" }],
  scalars: {},
});

test("a launch takes as long as its bytes or its operations, whichever is longer", () => {
  expect(estimatedMilliseconds(launch(1e6), softwareRates)).toBeCloseTo(1);
  expect(estimatedMilliseconds(launch(1e6, 2e9), softwareRates)).toBeCloseTo(100);
});

test("launches go in one submit up to half a second, and one launch is never divided", () => {
  const short = launch(1e6, 4e9); // 200 ms
  expect(submitEnds([short, short], softwareRates)).toEqual([2]);
  expect(submitEnds([short, short, short, short, short], softwareRates)).toEqual([2, 4, 5]);
  expect(submitEnds([launch(1, 100e9), short], softwareRates)).toEqual([1, 2]);
  expect(submitEnds([], softwareRates)).toEqual([0]);
});

test("a long step is submitted in parts, with the same results", async () => {
  const device = await requestTestDevice();
  const runtime = gpuRuntime(device);
  const size = 1024;
  const values = Float32Array.from({ length: size * size }, (_, i) => ((i % 7) - 3) / 64);
  const factor = runtime.tensor(values, [size, size]);
  const raise = async (from: Tensor, products: number): Promise<{ x: Tensor; submits: number }> => {
    const before = device.counters.snapshot();
    const x = await runtime.step(() => {
      let power = from;
      for (let i = 0; i < products; i++) power = power.matmul(factor);
      return power;
    });
    return { x, submits: device.counters.since(before).submits };
  };
  const whole = await raise(factor, 6);
  const first = await raise(factor, 3);
  const second = await raise(first.x, 3);
  // Each product is estimated at 107 ms on a software adapter, and at a tenth of that on hardware.
  const parts = device.capabilities.adapter.isFallback ? 2 : 1;
  expect([whole.submits, first.submits, second.submits]).toEqual([parts, 1, 1]);
  expect(await whole.x.toArray()).toEqual(await second.x.toArray());
}, 120_000);
