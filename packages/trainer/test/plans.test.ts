import { cpuRuntime, dumpPlan } from "@halfstep/tensor";
import { describe, expect, test } from "vitest";
import { plansOf, precisions, references } from "./reference-steps.js";

// What the planner makes of the reference models' training steps, pinned: `vitest run test/plans.test.ts -u` after a change
// that was meant.

describe.each(references)("$name", (reference) => {
  const plans = plansOf(cpuRuntime(), reference);

  test("its plans are those of the snapshot", async () => {
    const text = precisions.map(
      (name) => `${name}\n${dumpPlan(plans[name], { detail: "summary" })}`,
    );
    const file = reference.name.replace(/\W+/g, "-").toLowerCase();
    await expect(`${text.join("\n\n")}\n`).toMatchFileSnapshot(`./plans/${file}.txt`);
  });

  test("no cast costs a launch", () => {
    const casts = precisions.map((name) => plans[name].statistics.casts);
    expect(casts).toEqual([0, 0, 0]);
  });

  test("half precision keeps little more than half as much for the backward pass", () => {
    const bytes = precisions.map((name) => plans[name].statistics.activationBytes);
    const [single, ...halves] = bytes as [number, number, number];
    expect(Math.max(...halves) / single).toBeLessThanOrEqual(0.55);
  });
});
