import { MemoryBudgetError } from "@halfstep/device";
import { expect, test } from "vitest";
import { type CpuRuntimeOptions, cpuRuntime } from "../index.js";

const kib = 1024;

test.each<[CpuRuntimeOptions, number]>([
  [{ memoryBudget: 64 * kib }, 16 * kib],
  [{ memoryBudget: 64 * kib, arithmetic: "float64" }, 2 * kib],
])("a budget %j holds so many elements: %i", async (options, most) => {
  const runtime = cpuRuntime(options);
  const refused = (size: number) => () => runtime.variable(new Float32Array(size), [size]);
  expect(refused(most + 4)).toThrow(MemoryBudgetError);
  const variable = runtime.variable(new Float32Array(most / 4), [most / 4]);
  expect(refused(most)).toThrow(/does not fit: \d+ of the budget of 65536 bytes are in use/);
  // Neither the memory of steps nor what was released stays in use.
  for (let step = 0; step < 8; step++) (await runtime.step(() => variable.mean().add(1))).dispose();
  for (let round = 0; round < 4; round++) refused(most / 2)().dispose();
});

test("by default a budget is below what the process may use, and a step beyond it changes nothing", async () => {
  const runtime = cpuRuntime();
  const variable = runtime.variable([1, 2], [2]);
  const step = runtime.step(() => {
    variable.assign(variable.mul(5));
    return Array.from({ length: 2 ** 10 }, () => variable.sum().expand([2 ** 31]));
  });
  await expect(step).rejects.toThrow(MemoryBudgetError);
  expect([...(await variable.toArray())]).toEqual([1, 2]);
});
