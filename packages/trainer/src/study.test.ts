import { describe, expect, it } from "vitest";
import { missingRuns, pairedDifference, type Study, type StudyRun, spreadOf } from "./study.js";
import { renderStudy } from "./study-report.js";

const study: Study = {
  app: "squares",
  metric: { name: "accuracy", unit: "%", better: "max" },
  variants: ["float32", "float16"],
  seeds: 3,
  run: async () => ({ metric: 0, loss: 0, wallSeconds: 0, peakBytes: 0, skippedSteps: 0 }),
};

const run = (variant: string, seed: number, metric: number, loss: number | null): StudyRun => ({
  ...{ variant, seed, machine: "a machine" },
  outcome: {
    ...{ metric, loss, wallSeconds: 12, peakBytes: 1536, skippedSteps: seed, bits: 1 + seed },
  },
});

const runs = [
  run("float32", 0, 90, 0.5),
  run("float32", 1, 92, 0.4),
  run("float32", 2, 94, 0.3),
  run("float16", 0, 91, 0.5),
  run("float16", 1, 92, 0.6),
];

describe("a study", () => {
  it("knows what is missing, seed by seed", () => {
    expect(missingRuns(study, runs)).toEqual([{ variant: "float16", seed: 2 }]);
    expect(missingRuns(study, []).map(({ variant, seed }) => `${variant} ${seed}`)).toEqual([
      "float32 0",
      "float16 0",
      "float32 1",
      "float16 1",
      "float32 2",
      "float16 2",
    ]);
  });

  it("pairs by seed", () => {
    // Differences 1 and 0: mean 1/2, deviation √(1/2), error 1/2.
    expect(pairedDifference(runs, "float16", "float32", "metric")).toEqual({
      count: 2,
      mean: 0.5,
      deviation: Math.SQRT1_2,
      error: expect.closeTo(0.5, 12),
    });
    expect(pairedDifference(runs, "float8", "float32", "metric").count).toBe(0);
  });

  it("has no deviation of one value", () => {
    expect(spreadOf([3])).toEqual({ count: 1, mean: 3, deviation: Number.NaN, error: Number.NaN });
  });

  it("is shown with what is missing and what is no number", () => {
    const page = renderStudy(study, [...runs, run("float16", 2, 93, null)], "squares-study.jsonl");
    const rows = page.split("\n").filter((line) => line.startsWith("|"));
    expect(rows).toEqual([
      "|  | runs | accuracy, % | loss | wall | peak | skipped steps | bits |",
      "| --- | --- | --- | --- | --- | --- | --- | --- |",
      "| float32 | 3 | 92.00 ± 2.00 | 0.4000 ± 0.1000 | 12.0 s | 1.5 KiB | 1.00 | 2.0000 ± 1.0000 |",
      "| float16 | 3 | 92.00 ± 1.00 | – | 12.0 s | 1.5 KiB | 1.00 | 2.0000 ± 1.0000 |",
      "|  | accuracy, % | loss |",
      "| --- | --- | --- |",
      "| float16 | 0.0000 ± 0.5774 | – |",
      "| seed | float32 | float16 |",
      "| --- | --- | --- |",
      "| 0 | 90.00, 0.5000 | 91.00, 0.5000 |",
      "| 1 | 92.00, 0.4000 | 92.00, 0.6000 |",
      "| 2 | 94.00, 0.3000 | 93.00, – |",
    ]);
    expect(page).toContain("[squares-study.jsonl](squares-study.jsonl)");
    expect(renderStudy(study, runs, "x")).toContain("| 2 | 94.00, 0.3000 | missing |");
    expect(renderStudy(study, runs.slice(0, 3), "x")).toContain(
      "| float16 | 0 | – | – | – | – | – | – |",
    );
  });
});
