import type { Device } from "@halfstep/device";
import { expect, it } from "vitest";
import { PhaseMeter } from "./phase-meter.js";

it("splits a step where it was recorded, and says which phase has raised the peak", async () => {
  const memory = { live: 100, peak: 150, pooled: 0, budget: 1000, resetPeak: () => {} };
  const meter = new PhaseMeter({ memory } as unknown as Device);
  const wait = (milliseconds: number) => new Promise((done) => setTimeout(done, milliseconds));
  const spin = (milliseconds: number): void => {
    for (const end = performance.now() + milliseconds; performance.now() < end; );
  };
  const value = await meter.step(async (recording) => {
    const loss = recording(() => {
      spin(10);
      return 3;
    })();
    memory.peak = 400;
    await wait(30);
    return loss;
  });
  await meter.during("evaluation", async () => {
    memory.live = 120;
  });
  const failing = meter.during("evaluation", async () => {
    throw new Error("no");
  });
  await expect(failing).rejects.toThrow("no");
  const { record, submit, evaluation, ...others } = meter.costs();
  expect([value, others]).toEqual([3, {}]);
  expect(record?.milliseconds).toBeGreaterThanOrEqual(9);
  expect(submit?.milliseconds).toBeGreaterThanOrEqual(25);
  expect([record, submit, evaluation].map((phase) => [phase?.times, phase?.peakBytes])).toEqual([
    [1, 100],
    [1, 400],
    [2, 120],
  ]);
});
