import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cpuRuntime } from "@halfstep/tensor";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
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
});
