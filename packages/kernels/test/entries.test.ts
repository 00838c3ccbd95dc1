import { accumulate, cpuTarget } from "@halfstep/kernels";
import { checkFinite } from "@halfstep/kernels/amp";
import { isAccumulation, isFiniteCheck } from "@halfstep/kernels/planner";
import { expect, test } from "vitest";

// The entries by their published names: where BUILT is 1, a module that was bundled twice would make two kernels of one.

test("the planner recognises kernels of other entries by their objects", () => {
  const target = cpuTarget();
  const x = { buffer: target.allocate(16), offset: 0, length: 4, dtype: "float32" } as const;
  const added = accumulate({ input: x, out: x }).kernel;
  const checked = checkFinite({ x, foundInf: target.allocate(4) }).kernel;
  expect([added, checked].map(isAccumulation)).toEqual([true, false]);
  expect([added, checked].map(isFiniteCheck)).toEqual([false, true]);
});
