import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { requestDevice } from "@halfstep/device/node";
import { gpuRuntime } from "@halfstep/tensor";
import { CheckpointFolder } from "@halfstep/trainer/node";
import { afterAll, describe, expect, it } from "vitest";
import { mnistDirectory, openTraining, type TrainingData } from "../src/data.js";
import { exportFolder } from "../src/export-folder.js";
import { networkFor } from "../src/model.js";
import { choosePrecision, type PrecisionFlags } from "../src/precision.js";
import { type ImagesRun, trainImages } from "../src/train.js";
import { nearestMeanAccuracy } from "./nearest-mean.js";

const device = await requestDevice();
const runtime = gpuRuntime(device);
const root = mkdtempSync(join(tmpdir(), "halfstep-images-"));
afterAll(() => {
  device.destroy();
  rmSync(root, { recursive: true });
});

const runOf = (data: TrainingData, flags: PrecisionFlags): ImagesRun => ({
  ...data,
  ...choosePrecision(flags),
  ...{ runtime, device, seed: 1 },
  // The stem for large images makes it sixteen times less work, and digits still have enough pixels.
  network: networkFor({ arch: "resnet20", width: 16, stem: "imagenet" }, data.view),
  ...{ batchSize: 32, accumulate: 1, epochs: 4, lr: 0.4, momentum: 0.9, weightDecay: 1e-4 },
  ...{ normDecay: false, warmUp: 1, milestones: [3], labelSmoothing: 0, workers: 4, evalEvery: 4 },
});

describe("on MNIST", () => {
  it("O1 learns more of 800 digits than their means say", async () => {
    const data = await openTraining(mnistDirectory(), { cropScale: 1, augment: true });
    const limited = { train: { ...data.train, count: 800 }, test: { ...data.test, count: 1000 } };
    const baseline = await nearestMeanAccuracy(limited.train, limited.test, 10);
    const result = await trainImages({ ...runOf(data, { optLevel: "O1" }), ...limited });
    const { steps, skippedSteps, test } = result?.summary ?? expect.unreachable();
    expect([steps, skippedSteps]).toEqual([100, 0]);
    expect(baseline).toBeGreaterThan(0.6);
    expect(test.accuracy).toBeGreaterThan(baseline + 0.08);
    expect(test.top5Accuracy).toBeGreaterThan(0.97);
    console.info(`O1: ${test.accuracy}, nearest mean: ${baseline}`);
  });
});

describe("on PNG files", () => {
  it("O2 goes on in the middle of an augmented epoch with the same bits", async () => {
    await exportFolder(mnistDirectory(), join(root, "digits"), { train: 160, test: 32 });
    const options = { imageSize: 28, cropScale: 0.5, flip: true, augment: true };
    const data = await openTraining(join(root, "digits"), options);
    const run = {
      ...runOf(data, { fp16: true, dynamicLossScale: true, initScale: 2 ** 14 }),
      epochs: 2,
    };
    const store = new CheckpointFolder(join(root, "checkpoints"));
    const lines: string[] = [];
    const checkpoints = { store, parts: {}, onNote: (line: string) => lines.push(line) };
    const unbroken = await trainImages({ ...run, maxSteps: 8 });
    await trainImages({ ...run, maxSteps: 3, checkpoints });
    const resumed = await trainImages({
      ...{ ...run, maxSteps: 8 },
      checkpoints: { ...checkpoints, resume: "auto" as const },
    });
    expect(lines.at(-1)).toContain("after step 3");
    expect(unbroken?.summary.precision).toBe("O2");
    const { parameterSha256, steps, finalScale, test } = resumed?.summary ?? expect.unreachable();
    expect({ parameterSha256, steps, finalScale, test }).toEqual({
      parameterSha256: unbroken?.summary.parameterSha256,
      ...{ steps: 8, finalScale: unbroken?.summary.finalScale, test: unbroken?.summary.test },
    });
    const half = resumed?.summary.parameterBytes ?? 0;
    expect(resumed?.summary.optimizerBytes).toBeGreaterThan(3.5 * half);
  });
});
