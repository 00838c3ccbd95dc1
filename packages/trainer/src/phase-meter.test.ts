import type { Device } from "@halfstep/device";
import { expect, it } from "vitest";
import { PhaseMeter } from "./phase-meter.js";

it("splits a step where it was recorded, and says which phase has raised the peak", async () => {
  const memory = { live: 100, peak: 150, pooled: 0, budget: 1000, resetPeak: () => {} };
  let now = 1000;
  const meter = new PhaseMeter({ memory } as unknown as Device, () => now);
  const value = await meter.step(async (recording) => {
    const loss = recording(() => {
      now += 10;
      return 3;
    })();
    memory.peak = 400;
    now += 30;
    return loss;
  });
  await meter.during("evaluation", async () => {
    memory.live = 120;
    now += 5;
  });
  const failing = meter.during("evaluation", async () => {
    throw new Error("no");
  });
  await expect(failing).rejects.toThrow("no");
  const { record, submit, evaluation, ...others } = meter.costs();
  expect([value, others]).toEqual([3, {}]);
  expect({ record, submit, evaluation }).toEqual({
    record: { milliseconds: 10, times: 1, peakBytes: 100 },
    submit: { milliseconds: 30, times: 1, peakBytes: 400 },
    evaluation: { milliseconds: 5, times: 2, peakBytes: 120 },
  });
});
