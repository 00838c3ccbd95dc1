import { expect, test } from "vitest";
import { ArgumentError } from "../errors.js";
import { cpuRuntime } from "../tensor/runtime.js";
import { allPasses, type OptimizationGoal, passesFor } from "./pipeline.js";

const leftOut = (goal?: OptimizationGoal): readonly string[] =>
  allPasses.filter((name) => !passesFor(goal).includes(name));

test("a goal leaves out the passes that work against it", () => {
  expect(leftOut()).toEqual([]);
  expect(leftOut("speed")).toEqual(["rematerializeSums"]);
  expect(leftOut("memory")).toEqual(["padRows"]);
});

test("a goal that does not exist is refused", () => {
  const optimizeFor = "size" as OptimizationGoal;
  expect(() => cpuRuntime({ optimizeFor })).toThrow(ArgumentError);
  expect(() => cpuRuntime({ optimizeFor })).toThrow(
    'optimizeFor is size; it takes "speed" or "memory"',
  );
});
