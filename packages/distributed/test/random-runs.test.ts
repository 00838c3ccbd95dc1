import { describe, expect, test } from "vitest";
import { modes, trainRandomly } from "./random-runs.js";

// A thousand runs are in the lane `long`.
describe("trainings with delays, reordering and losses end with the right parameters or by a deadline", () => {
  test.each(Object.entries(modes))("%s", async (_, mode) => {
    let deadlines = 0;
    for (let seed = 0; seed < 7; seed++) deadlines += await trainRandomly(mode, seed);
    expect(deadlines).toBeLessThan(7 * 4);
  });
});
