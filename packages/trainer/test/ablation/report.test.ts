import type { PassName } from "@halfstep/tensor/internals";
import { expect, test } from "vitest";
import type { PlanCounts, PlannedStep } from "../planned-steps.js";
import type { Effect } from "./effects.js";
import { tablesOf } from "./report.js";
import { timedEffect } from "./times.js";

const step = (model: string, changes: Partial<PlannedStep> = {}): PlannedStep => ({
  ...{ model, hardware: "software", precision: "float32", clips: false, microBatches: 1 },
  ...changes,
});

const counts = (launches: number, loadedBytes: number, peakBytes: number): PlanCounts => ({
  ...{ launches, casts: 0, loadedBytes, storedBytes: 100, peakBytes },
  hash: `${launches} ${loadedBytes} ${peakBytes}`,
});

const all = counts(10, 300, 1000);
const same: Effect = { step: step("MLP 1-2, batch 3"), all, without: all };
const onGpu: Effect = { ...same, step: step("GPT of 6 layers", { hardware: "nvidia" }) };
const dearer: Effect = {
  step: step("ResNet-20, 32×32", { precision: "float16", clips: true, microBatches: 2 }),
  all,
  without: counts(12, 400, 1500),
};
const cheaper: Effect = { step: step("U-Net of width 8"), all, without: counts(9, 260, 1000) };

const tables = (
  effects: readonly (readonly [PassName, readonly Effect[]])[],
  times: Parameters<typeof tablesOf>[0]["times"] = new Map(),
): string => tablesOf({ effects: new Map(effects), times });

test("a pass has its worst, its middle and its best step in each table", () => {
  const text = tables([["foldCasts", [same, dearer, onGpu, cheaper]]]);
  expect(text).toContain("| foldCasts | 2 of 3 | 0 of 1 | software alone |");
  const best = "(ResNet-20, float16, clipped, 2 batches, software) |";
  const worst = "(U-Net, float32, software)";
  expect(text).toContain(`| foldCasts | −1 ${worst} | +0.5 | +2 ${best}`);
  expect(text).toContain(`| foldCasts | −10.0 % ${worst} | +7.5 % | +25.0 % ${best}`);
  expect(text).toContain(`| foldCasts | – | +25.0 % | +50.0 % ${best}`);
  expect(text).not.toContain("Time");
});

test("a pass that changes no plan says so, and is not timed", () => {
  expect(tables([["removeDeadLaunches", [same, onGpu]]])).toContain(
    "| 0 of 1 | 0 of 1 | no plan here |",
  );
  const changedOnGpu = { ...onGpu, without: dearer.without };
  expect(timedEffect([same, changedOnGpu])).toBeUndefined();
});

test("of the steps of a software adapter the one is timed that gains most", () => {
  expect(timedEffect([same, cheaper, dearer, onGpu])).toBe(dearer);
  const times = new Map([
    ["foldCasts" as const, { step: dearer.step, elapsed: [1, 2, 3, 4, 5], driver: [] }],
  ]);
  const text = tables([["foldCasts", [same, dearer]]], times);
  const name = "ResNet-20, float16, clipped, 2 batches, software";
  expect(text).toContain(`| foldCasts | ${name} | 10 → 12 | ×3.00 (2.00 to 4.00) | – | 5 |`);
});
