import { requestTestDevice } from "@halfstep/device/testing";
import { expect, test } from "vitest";
import { runtime } from "../tensor/runtime.js";
import { gpuRunner } from "./gpu-runner.js";
import type { Runner } from "./runner.js";

test("a run of segments takes a submit for each, and makes nothing once its plan is known", async () => {
  const device = await requestTestDevice();
  const runner = gpuRunner(device);
  const cuts = [1, 2, 2];
  const inSegments: Runner = {
    ...runner,
    start(plan, invocation) {
      const run = runner.start(plan, invocation);
      return {
        ...run,
        finish() {
          for (const cut of cuts) run.runTo(cut);
          return run.finish();
        },
      };
    },
  };
  const divided = runtime(inSegments, { passes: [] });
  const weight = divided.variable([1, 2], [2]);
  for (let step = 0; step < 4; step++) {
    const before = device.counters.snapshot();
    await divided.step(() => weight.assign(weight.mul(2).add(step).mul(0.5)));
    const { submits, buffersCreated, bindGroupsCreated } = device.counters.since(before);
    expect(submits).toBe(3);
    if (step > 0) expect([buffersCreated, bindGroupsCreated]).toEqual([0, 0]);
  }
  expect([...(await weight.toArray())]).toEqual([4, 5]);
});
