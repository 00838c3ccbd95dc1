import { expect, test } from "vitest";
import { cpuTime, workOf } from "./cpu-clock.js";

test("work is the CPU time of all threads, without what the main thread spends waiting", () => {
  const before = { process: 100, main: 40 };
  const waiting = { process: 103, main: 42 };
  const after = { process: 150, main: 62 };
  expect(workOf(before, waiting, after)).toBe(30);
  expect(workOf(before, { ...waiting, main: undefined }, after)).toBeUndefined();
});

test("the clock runs while this thread computes", () => {
  const before = cpuTime();
  let sum = 0;
  while (cpuTime().process - before.process < 5) for (let i = 0; i < 1e5; i++) sum += i;
  const after = cpuTime();
  expect(sum).toBeGreaterThan(0);
  expect(after.process).toBeGreaterThan(before.process);
  if (after.main !== undefined) expect(after.main).toBeGreaterThan(before.main as number);
});
