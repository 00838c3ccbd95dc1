import { requestDevice } from "@halfstep/device/node";
import { gpuRuntime } from "@halfstep/tensor";
import { allPasses, type PassName } from "@halfstep/tensor/internals";
import type { Precision, RunSummary } from "@halfstep/trainer";
import { expect, test } from "vitest";
import { firstOf, trainDigits } from "../src/digits.js";
import { realDigits } from "./mnist.js";

/** Forty steps on the real digits: enough to reach the steady state that counters are read in. */
async function shortRun(precision: Precision, passes: readonly PassName[]): Promise<RunSummary> {
  const device = await requestDevice();
  const summary = await trainDigits({
    runtime: gpuRuntime(device, { passes }),
    device,
    precision,
    train: firstOf(realDigits.train, 40 * 32),
    test: firstOf(realDigits.test, 500),
    epochs: 1,
    batchSize: 32,
    lr: 1e-2,
    seed: 0,
    initScale: 65536,
  });
  device.destroy();
  if (!summary) throw new Error("training ended early, though nothing stopped it");
  return summary;
}

test("what a step costs, and what planning saves", { timeout: 300_000 }, async () => {
  const float32 = await shortRun("float32", allPasses);
  const float16 = await shortRun("float16", allPasses);
  const unplanned = await shortRun("float16", []);
  const figures = ({ perStep, activationBytes, peakBytes }: RunSummary) => ({
    ...perStep,
    activationBytes,
    peakBytes,
  });
  console.table({
    float32: figures(float32),
    float16: figures(float16),
    "float16, no passes": figures(unplanned),
  });
  for (const { perStep } of [float32, float16])
    expect(perStep).toMatchObject({
      hostWaits: 0,
      submits: 1,
      castDispatches: 0,
      buffersCreated: 0,
      bindGroupsCreated: 0,
    });
  // Casts of parameters are not among them: those are read from half copies.
  expect(unplanned.perStep.castDispatches).toBe(9);
  expect(float16.perStep.dispatches).toBeLessThan(unplanned.perStep.dispatches - 10);
  expect(float16.activationBytes / float32.activationBytes).toBeLessThanOrEqual(0.55);
  expect(float16.peakBytes).toBeLessThan(unplanned.peakBytes);
  expect(float16.parameterSha256, "planning changed the trained parameters").toBe(
    unplanned.parameterSha256,
  );
});
