import type { Kernel, Launch } from "@halfstep/device";
import { requestTestDevice } from "@halfstep/device/testing";
import { expect, test } from "vitest";
import { runtime } from "../tensor/runtime.js";
import type { Tensor } from "../tensor/tensor.js";
import "../tensor/with-methods.js";
import { gpuRunner } from "./gpu-runner.js";
import { estimatedMilliseconds, hardwareRates, PlanSubmits, RunClock } from "./submits.js";

const launch = (elements: number, operations?: number): Launch<null> => ({
  kernel: {
    ...(operations !== undefined && { operations: () => operations }),
  } as Partial<Kernel> as Kernel,
  bindings: [{ buffer: null, offset: 0, length: elements, dtype: "float32" }],
  scalars: {},
});

const short = launch(1e6, 40e9); // 400 ms
const endsOf = (...launches: Launch<null>[]): readonly number[] =>
  new PlanSubmits(launches, hardwareRates).ends();

test("a launch takes as long as its bytes or its operations, whichever is longer", () => {
  expect(estimatedMilliseconds(launch(1e6), hardwareRates)).toBeCloseTo(0.4);
  expect(estimatedMilliseconds(launch(1e6, 2e9), hardwareRates)).toBeCloseTo(20);
});

test("launches go in one submit up to a second, and one launch is never divided", () => {
  expect(endsOf(short, short)).toEqual([2]);
  expect(endsOf(short, short, short, short, short)).toEqual([2, 4, 5]);
  expect(endsOf(launch(1, 500e9), short)).toEqual([1, 2]);
  expect(endsOf()).toEqual([0]);
});

test("a driver that nobody resets gets one submit", () => {
  expect(new PlanSubmits(Array(9).fill(short), undefined).ends()).toEqual([9]);
});

test("a plan that was measured to be faster needs fewer submits, and never more again", () => {
  const plan = new PlanSubmits(Array(10).fill(short), hardwareRates);
  expect(plan.ends()).toEqual([2, 4, 6, 8, 10]);
  plan.measured(2000);
  expect(plan.ends()).toEqual([5, 10]);
  plan.measured(900);
  plan.measured(60_000);
  expect(plan.ends()).toEqual([10]);
});

test("the clock bounds each plan's time by what passed from the first start to the fence, by its runs", () => {
  let now = 100;
  const clock = new RunClock(() => now);
  const [often, once, later] = [0, 1, 2].map(
    () => new PlanSubmits(Array(10).fill(short), hardwareRates),
  ) as [PlanSubmits, PlanSubmits, PlanSubmits];
  for (const plan of [often, once, often]) {
    clock.ran(plan, now);
    now += 500;
  }
  const reached = clock.fence();
  now += 300;
  clock.ran(later, now);
  const next = clock.fence();
  now += 200;
  reached(); // 2000 ms after the first start
  expect([often, once, later].map((plan) => plan.ends().length)).toEqual([1, 2, 5]);
  now += 300;
  next(); // 500 ms after its start
  expect(later.ends()).toEqual([10]);
});

test("a long step is submitted in parts until it was measured, with the same results", async () => {
  const device = await requestTestDevice();
  // So slow that a product of 256³ is estimated at 3.4 s.
  const rates = { bytesPerSecond: 1e9, operationsPerSecond: 1e7 };
  const divided = runtime(gpuRunner(device, { maxInFlight: 2, rates }));
  const size = 256;
  const values = Float32Array.from({ length: size * size }, (_, i) => ((i % 7) - 3) / 64);
  const factor = divided.tensor(values, [size, size]);
  const submits: number[] = [];
  const results: Float32Array[] = [];
  for (let run = 0; run < 4; run++) {
    const before = device.counters.snapshot();
    const cube = await divided.step((): Tensor => factor.matmul(factor).matmul(factor));
    submits.push(device.counters.since(before).submits);
    results.push((await cube.toArray()) as Float32Array);
  }
  expect(submits[0]).toBe(2);
  expect(submits.at(-1)).toBe(1);
  for (const result of results) expect(result).toEqual(results[0]);
}, 600_000);
