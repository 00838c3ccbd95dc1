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

it("O1 learns more of 800 digits than their means say", async () => {
  const data = await openTraining(mnistDirectory(), { cropScale: 1, augment: true });
  const limited = { train: { ...data.train, count: 800 }, test: { ...data.test, count: 1000 } };
  const baseline = await nearestMeanAccuracy(limited.train, limited.test, 10);
  const run = digitsRun({ runtime, device }, data, { optLevel: "O1" });
  const result = await trainImages({ ...run, ...limited });
  const { steps, skippedSteps, test } = result?.summary ?? expect.unreachable();
  expect([steps, skippedSteps]).toEqual([100, 0]);
  expect(baseline).toBeGreaterThan(0.6);
  expect(test.accuracy).toBeGreaterThan(baseline + 0.08);
  expect(test.top5Accuracy).toBeGreaterThan(0.97);
  console.info(`O1: ${test.accuracy}, nearest mean: ${baseline}`);
});
