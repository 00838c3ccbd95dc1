import { requestTestDevice } from "@halfstep/device/testing";
import { gpuRuntime } from "@halfstep/tensor";
import { afterAll, expect, it } from "vitest";
import { mnistDirectory, openTraining } from "../src/data.js";
import { trainImages } from "../src/train.js";
import { digitsRun } from "./digits-run.js";
import { nearestMeanAccuracy } from "./nearest-mean.js";

const device = await requestTestDevice();
const runtime = gpuRuntime(device);
afterAll(() => device.destroy());

it.each([
  ["O1", { optLevel: "O1" }],
  ["O2", { fp16: true, dynamicLossScale: true, initScale: 65536 }],
] as const)("%s learns more of 800 digits than their means say", async (precision, flags) => {
  const data = await openTraining(mnistDirectory(), { cropScale: 1, augment: true });
  const limited = { train: { ...data.train, count: 800 }, test: { ...data.test, count: 1000 } };
  const baseline = await nearestMeanAccuracy(limited.train, limited.test, 10);
  const run = digitsRun({ runtime, device }, data, flags);
  const result = await trainImages({ ...run, ...limited });
  const {
    precision: precisionOfRun,
    steps,
    skippedSteps,
    test,
  } = result?.summary ?? expect.unreachable();
  expect([precisionOfRun, steps]).toEqual([precision, 100]);
  expect(skippedSteps).toBeLessThan(3);
  expect(baseline).toBeGreaterThan(0.6);
  expect(test.accuracy).toBeGreaterThan(baseline + 0.08);
  expect(test.top5Accuracy).toBeGreaterThan(0.97);
  console.info(`${precision}: ${test.accuracy}, nearest mean: ${baseline}`);
});
