import { expect, test } from "vitest";
import {
  hardwareClasses,
  type PlanCounts,
  type PlannedStep,
  plannedModels,
  planSteps,
  shortName,
} from "./planned-steps.js";

// What every kind of step of the reference models costs, pinned. After a change that was meant, in the folder of this package:
// `HALFSTEP_LANE_TESTS=test/plan-counts.lane.test.ts npx vitest run -u`. Plans as text are in plans.test.ts, of one kind of step.

const columns = [
  ...["model", "hardware", "precision", "clips", "batches"],
  ...["launches", "casts", "loaded", "stored", "peak", "plan"],
];
/** Columns that are read as words. */
const words = 5;
const widths = [10, 8, 9, 5, 7, 8, 5, 13, 11, 11, 12];

const row = (cells: readonly string[]): string =>
  cells
    .map((cell, c) => (c < words ? cell.padEnd(widths[c] ?? 0) : cell.padStart(widths[c] ?? 0)))
    .join("  ");

const grouped = (count: number): string => count.toLocaleString("en-US");

const rowOf = ([step, counts]: readonly [PlannedStep, PlanCounts]): string =>
  row([
    ...[shortName(step.model), step.hardware, step.precision],
    ...[step.clips ? "yes" : "no", String(step.microBatches)],
    ...[counts.launches, counts.casts].map(grouped),
    ...[counts.loadedBytes, counts.storedBytes, counts.peakBytes].map(grouped),
    counts.hash,
  ]);

test("every plan costs what it did", async () => {
  const groups = plannedModels.map((reference) =>
    hardwareClasses.flatMap((hardware) => planSteps(reference, hardware).map(rowOf)).join("\n"),
  );
  const text = [row(columns), ...groups].join("\n\n");
  await expect(`${text}\n`).toMatchFileSnapshot("./plans/counts.txt");
});
