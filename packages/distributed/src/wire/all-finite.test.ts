import { expect, it } from "vitest";
import { allFinite } from "./all-finite.js";

it.each([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])(
  "finds %d at both ends and in the middle",
  async (bad) => {
    for (const at of [0, 300_000, 599_999]) {
      const numbers = new Float32Array(600_000).fill(-3e38);
      expect(await allFinite(numbers)).toBe(true);
      numbers[at] = bad;
      expect(await allFinite(numbers)).toBe(false);
    }
  },
);

it("lets the event loop run", async () => {
  let turns = 0;
  let isDone = false;
  const turn = (): void => {
    turns++;
    if (!isDone) setImmediate(turn);
  };
  setImmediate(turn);
  await allFinite(new Float32Array(2 ** 22));
  isDone = true;
  expect(turns).toBeGreaterThanOrEqual(4);
});
