import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cpuRuntime } from "@halfstep/tensor";
import { CheckpointFolder } from "@halfstep/trainer/node";
import { afterAll, expect, it } from "vitest";
import { openSegmenter } from "../src/saved-model.js";
import type { SceneSet } from "../src/scene.js";
import { type SegmentationRun, trainUNet } from "../src/train.js";
import { numbered } from "./scenes.js";

const scratch = mkdtempSync(join(tmpdir(), "halfstep-segmentation-"));
afterAll(() => rmSync(scratch, { recursive: true }));

const scenes: SceneSet = {
  ...{ name: "stripes", channels: 1, classes: ["even", "odd"] },
  ...{ maskKind: "grey", maskValues: [0, 255] },
  ...{ scale: 1, flips: true, train: [numbered(32, 40)], heldOut: [numbered(16, 20)] },
};

const run = (more: Partial<SegmentationRun> = {}): SegmentationRun => ({
  ...{ runtime: cpuRuntime(), device: undefined, precision: "float16", scenes, seed: 1, width: 2 },
  ...{ bilinear: true, tile: 16, batchSize: 2, epochs: 3, optimizer: "rmsprop", lr: 1e-4 },
  ...{ schedule: "plateau", weightDecay: 0, clip: 1 },
  ...more,
});

it("training that was stopped ends with the bytes of training that was not", {
  timeout: 600_000,
}, async () => {
  const whole = await trainUNet(run());
  const directory = join(scratch, "run", "checkpoints");
  const store = new CheckpointFolder(directory);
  const stop = new AbortController();
  const stopped = await trainUNet(
    run({
      signal: stop.signal,
      checkpoints: { store, parts: {} },
      hooks: { stop: { afterStep: ({ step }) => void (step === 3 && stop.abort()) } },
    }),
  );
  expect(stopped).toBeUndefined();
  const resumed = await trainUNet(run({ checkpoints: { store, parts: {}, resume: "auto" } }));
  expect(resumed?.summary.steps).toBe(6);
  expect(resumed?.summary.parameterSha256).toBe(whole?.summary.parameterSha256);
  expect(resumed?.judged).toEqual(whole?.judged);

  const opened = await openSegmenter(cpuRuntime(), join(scratch, "run"));
  expect(opened).toMatchObject({ classes: ["even", "odd"], width: 2, precision: "float16" });
  const [saved, trained] = await Promise.all([
    opened.model.stateDict(),
    resumed?.segmenter.model.stateDict(),
  ]);
  expect(Object.keys(saved)).toEqual(Object.keys(trained ?? {}));
});

it("what is no run folder is refused", async () => {
  const runtime = cpuRuntime();
  await expect(openSegmenter(runtime, join(scratch, "nowhere"))).rejects.toThrow(
    /nowhere is not there: train first/,
  );
});
