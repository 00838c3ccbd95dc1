import { expect, test } from "vitest";
import { type Mode, modes, trainRandomly } from "./random-runs.js";

test("a thousand trainings with delays, reordering and losses end with the right parameters or by a deadline", async () => {
  const all = Object.values(modes);
  let deadlines = 0;
  // Layouts, losses and modes have no common factor: each meets each.
  for (let seed = 0; seed < 1000; seed++)
    deadlines += await trainRandomly(all[seed % all.length] as Mode, seed);
  console.log(`note: ${deadlines} ranks ended at a deadline`);
  expect(deadlines).toBeGreaterThan(100);
}, 600_000);
