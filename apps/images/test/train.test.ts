import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { requestDevice } from "@halfstep/device/node";
import { gpuRuntime } from "@halfstep/tensor";
import { CheckpointFolder } from "@halfstep/trainer/node";
import { afterAll, expect, it } from "vitest";
import { mnistDirectory, openTraining } from "../src/data.js";
import { exportFolder } from "../src/export-folder.js";
import { trainImages } from "../src/train.js";
import { digitsRun } from "./digits-run.js";

const device = await requestDevice();
const runtime = gpuRuntime(device);
const root = mkdtempSync(join(tmpdir(), "halfstep-images-"));
afterAll(() => {
  device.destroy();
  rmSync(root, { recursive: true });
});

it("O2 goes on in the middle of an augmented epoch with the same bits", async () => {
  await exportFolder(mnistDirectory(), join(root, "digits"), { train: 160, test: 32 });
  const options = { imageSize: 28, cropScale: 0.5, flip: true, augment: true };
  const data = await openTraining(join(root, "digits"), options);
  const run = {
    ...digitsRun({ runtime, device }, data, {
      fp16: true,
      dynamicLossScale: true,
      initScale: 2 ** 14,
    }),
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
