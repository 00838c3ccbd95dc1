import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { requestTestDevice } from "@halfstep/device/testing";
import { GradScaler } from "@halfstep/grad-scaler";
import { ampPrimitives, cpuRuntime, gpuRuntime } from "@halfstep/tensor";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CheckpointError } from "../src/checkpoint/checkpoint-error.js";
import { readCheckpoint } from "../src/checkpoint/read-checkpoint.js";
import { RunFolder } from "../src/run-folder.js";
import type { TrainResult } from "../src/train.js";
import {
  batchesPerEpoch,
  epochs,
  leftBehind,
  type Resumable,
  trainResumable,
} from "./resumable.js";

let parent: string;
beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), "halfstep-resume-"));
});
afterEach(() => rmSync(parent, { recursive: true }));

/** A run on a runtime of its own, as another process would have. */
const runIn = async (name: string, how: Partial<Resumable> = {}): Promise<TrainResult> => {
  const folder = new RunFolder(join(parent, name));
  try {
    return await trainResumable({ runtime: cpuRuntime(), folder, ...how });
  } finally {
    folder.close();
  }
};

describe("training that was stopped goes on with the bits of training that was not", () => {
  it("after any micro-step: mid-epoch, mid-accumulation, after a skipped step", async () => {
    const unbroken = await runIn("unbroken");
    expect(unbroken).toMatchObject({ steps: 9, isAborted: false, resumedAt: 0 });
    expect(unbroken.skippedSteps).toBeGreaterThan(1);
    expect(unbroken.appliedSteps).toBeGreaterThan(4);
    const expected = leftBehind(join(parent, "unbroken"));
    expect(Object.keys(expected)).toHaveLength(6);

    const different: string[] = [];
    for (let stop = 1; stop < epochs * batchesPerEpoch; stop++) {
      const controller = new AbortController();
      const first = await runIn(`${stop}`, {
        onMicroStep: (count) => count === stop && controller.abort(),
        options: { signal: controller.signal },
      });
      const second = await runIn(`${stop}`, { resume: "auto" });
      const { steps, appliedSteps, finalScale, activationBytes, stepBytes } = second;
      const isSame =
        JSON.stringify(leftBehind(join(parent, `${stop}`))) === JSON.stringify(expected);
      if (!isSame || !first.isAborted || second.resumedAt !== first.steps)
        different.push(`after ${stop}`);
      expect({ steps, appliedSteps, finalScale, activationBytes, stepBytes }).toEqual({
        steps: 9,
        appliedSteps: unbroken.appliedSteps,
        finalScale: unbroken.finalScale,
        activationBytes: unbroken.activationBytes,
        stepBytes: unbroken.stepBytes,
      });
    }
    expect(different).toEqual([]);
  });

  it("and would not, if it did not go on with the random numbers", async () => {
    await runIn("unbroken");
    const controller = new AbortController();
    const onMicroStep = (count: number): unknown => count === 7 && controller.abort();
    await runIn("broken", { onMicroStep, options: { signal: controller.signal } });
    const checkpoint = join(parent, "broken", "checkpoints", "step-00000004");
    const whole = await readCheckpoint(checkpoint);
    const resume = { ...whole, parts: { ...whole.parts, dropout: { seed: 7, offset: 0 } } };
    await runIn("broken", { resume });
    expect(leftBehind(join(parent, "broken"))).not.toEqual(leftBehind(join(parent, "unbroken")));
  });

  it("stopped at every micro-step in turn", async () => {
    await runIn("unbroken");
    let calls = 0;
    for (let isAborted = true; isAborted; calls++) {
      const controller = new AbortController();
      ({ isAborted } = await runIn("broken", {
        resume: "auto",
        onMicroStep: () => controller.abort(),
        options: { signal: controller.signal },
      }));
    }
    expect(calls).toBe(epochs * batchesPerEpoch);
    expect(leftBehind(join(parent, "broken"))).toEqual(leftBehind(join(parent, "unbroken")));
  });

  it("with batches that have to be left out, and where steps are repeated until they are applied", async () => {
    const options = { batchesFrom: undefined, onOverflow: "retry" } as const;
    await runIn("unbroken", { options });
    for (const stop of [2, 5, 9]) {
      const controller = new AbortController();
      await runIn(`${stop}`, {
        onMicroStep: (count) => count === stop && controller.abort(),
        options: { ...options, signal: controller.signal },
      });
      const { resumedAt } = await runIn(`${stop}`, { resume: "auto", options });
      expect(resumedAt).toBeGreaterThan(0);
      expect(leftBehind(join(parent, `${stop}`))).toEqual(leftBehind(join(parent, "unbroken")));
    }
  });

  it("from the newest checkpoint that is whole, and says so", async () => {
    const notes: string[] = [];
    await runIn("run", { every: { steps: 2 } });
    rmSync(join(parent, "run", "checkpoints", "step-00000009", "state.json"));
    const { resumedAt } = await runIn("run", {
      resume: "auto",
      onNote: (line) => notes.push(line),
    });
    expect(resumedAt).toBe(8);
    expect(notes).toEqual([
      expect.stringMatching(
        /^a checkpoint is passed over: .*step-00000009\/state.json is missing: go on from an older one/,
      ),
      expect.stringMatching(/^going on from .*step-00000008, after step 8$/),
    ]);
    await runIn("unbroken");
    expect(leftBehind(join(parent, "run"))).toEqual(leftBehind(join(parent, "unbroken")));
    // What has come to its end is not trained any more.
    expect(await runIn("run", { resume: "auto" })).toMatchObject({
      steps: 9,
      resumedAt: 9,
      isAborted: false,
    });
  });
});

it("training that goes on with another table of blocks says that its bits may differ", async () => {
  const notes: string[] = [];
  await runIn("run", { tables: "those", options: { maxSteps: 2 } });
  const { tables } = await readCheckpoint(join(parent, "run", "checkpoints", "step-00000002"));
  expect(tables).toBe("those");
  for (const now of ["those", "others"])
    await runIn("run", {
      ...{ resume: "auto", tables: now, onNote: (line: string) => notes.push(line) },
      options: { maxSteps: 2 },
    });
  const differing = notes.filter((line) => line.includes("may differ"));
  expect(differing).toEqual([
    expect.stringMatching(/another table of blocks \(kernelTable\), so the bits may differ/),
  ]);
});

it("training that goes on with another rule of the loss scale says which one holds", async () => {
  const notes: string[] = [];
  await runIn("run", { options: { maxSteps: 2 } });
  const runtime = cpuRuntime();
  const scaler = new GradScaler(ampPrimitives(runtime), { preset: "static", initScale: 2 ** 21 });
  await runIn("run", {
    ...{ runtime, resume: "auto", onNote: (line: string) => notes.push(line) },
    options: { scaler, maxSteps: 2 },
  });
  expect(notes.at(-1)).toMatch(
    /^the loss scale goes on by the rule of .*step-00000002, not by the one that was given: dynamic, growthInterval, minScale differ$/,
  );
  expect(scaler.rule.dynamic).toBe(true);
});

it("training that goes on with other options of the optimizer says which ones hold", async () => {
  const notes: string[] = [];
  const options = { maxSteps: 2 };
  const onNote = (line: string): unknown => notes.push(line);
  await runIn("run", { options });
  await runIn("run", { resume: "auto", onNote, options });
  expect(notes).toHaveLength(1);
  await runIn("run", { resume: "auto", onNote, options, weightDecay: 0.5 });
  expect(notes.slice(2)).toEqual([
    expect.stringMatching(
      /^the optimizer goes on with the options of .*step-00000002: weightDecay 0.01, not 0.5\. A learning rate that is a function stays as given$/,
    ),
  ]);
});

describe("a checkpoint of something else is refused", () => {
  const cases: readonly (readonly [string, Partial<Resumable>, RegExp])[] = [
    ["another recipe", { options: { precision: "O3" } }, /was trained by the recipe O2, not O3/],
    ["another accumulation", { options: { accumulate: 3 } }, /accumulates 2 batches a step, not 3/],
    [
      "less data",
      { options: { batches: () => [], batchesFrom: undefined } },
      /was saved after 2 batches of epoch 1, which has only 0 now/,
    ],
    [
      "no loss scale",
      { options: { scaler: new GradScaler(ampPrimitives(cpuRuntime()), { enabled: false }) } },
      /was trained with a loss scale, and the scaler is disabled/,
    ],
    [
      "a part that it has not",
      { options: { hooks: { other: { stateDict: () => 1, loadStateDict: () => {} } } } },
      /has no state of the hook other/,
    ],
  ];

  it.each(cases)("%s", async (_, change, message) => {
    const controller = new AbortController();
    await runIn("run", {
      onMicroStep: (count) => count === 2 && controller.abort(),
      options: { signal: controller.signal },
    });
    const resumed = runIn("run", { resume: "auto", ...change });
    await expect(resumed).rejects.toBeInstanceOf(CheckpointError);
    await expect(resumed).rejects.toThrow(message);
  });

  it("another model, a part of another state, a log that was cut", async () => {
    await runIn("run", { options: { maxSteps: 4 } });
    const whole = await readCheckpoint(join(parent, "run", "checkpoints", "step-00000004"));
    const messages: unknown[] = [];
    for (const parts of [
      { model: {} },
      { dropout: { seed: 8, offset: 0 } },
      { training: { step: "4" } },
      { ema: undefined },
    ]) {
      const resume = { ...whole, parts: { ...whole.parts, ...parts } };
      messages.push(
        await runIn("run", { resume }).catch(
          (error: CheckpointError) => `${error.problem}: ${error.message}`,
        ),
      );
    }
    writeFileSync(join(parent, "run", "metrics.jsonl"), "");
    messages.push(await runIn("run", { resume: "auto" }).catch((error: Error) => error.message));
    expect(messages).toEqual([
      expect.stringMatching(/^misfit: .*does not fit, model: .*missing: layers\.0\.weight/),
      expect.stringMatching(
        /^misfit: .*does not fit, dropout: the generator was seeded with 8, and this one with 7/,
      ),
      expect.stringMatching(/^misfit: .*does not say where training stood/),
      expect.stringMatching(/^misfit: .*has no state of ema/),
      expect.stringMatching(/does not fit, log: .*metrics.jsonl has 0 bytes, and had \d+ when/),
    ]);
  });
});

describe("a device that is lost", () => {
  it("ends training, and nothing that came after it is saved", async () => {
    const device = await requestTestDevice();
    const folder = new RunFolder(join(parent, "lost"));
    const training = trainResumable({
      ...{ runtime: gpuRuntime(device), folder, every: { steps: 1 } },
      onMicroStep: (count) => count === 6 && device.destroy(),
    });
    await expect(training).rejects.toThrow(/destroyed|lost/);
    expect((await folder.checkpoints.newest()).checkpoint?.step).toBe(3);
    folder.close();
  });
});
