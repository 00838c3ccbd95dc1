import { expect, test } from "vitest";
import { Breath } from "./breath.js";
import { copyTo } from "./copy.js";

test("long copies are whole, and let the event loop run in between", async () => {
  const from = Float32Array.from({ length: (1 << 22) + 3 }, (_, i) => i);
  const to = new Float32Array(from.length + 1).fill(-1);
  let turns = 0;
  let isCopying = true;
  const count = () => {
    turns++;
    if (isCopying) setImmediate(count);
  };
  setImmediate(count);
  await copyTo(to, from, new Breath());
  isCopying = false;
  // Comparing four million elements one by one takes seconds.
  const bytesOf = (numbers: Float32Array) => Buffer.from(numbers.buffer, 0, from.byteLength);
  expect(bytesOf(to).equals(bytesOf(from))).toBe(true);
  expect(to.at(-1)).toBe(-1);
  expect(turns).toBeGreaterThanOrEqual(4);
});
