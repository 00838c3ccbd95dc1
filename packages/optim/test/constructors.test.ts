import { cpuTarget } from "@halfstep/kernels";
import { expect, test } from "vitest";
import * as optim from "../src/index.js";
import { classes } from "./catalogue.js";

type Constructor = new (...given: readonly unknown[]) => unknown;

const target = cpuTarget();
const flat = optim.flatTensors(target, { weight: [4, 4] });
const other = optim.flatTensors(target, { weight: [4, 4] });
const optimizers = Object.keys(classes);
const wrappers = ["ExponentialMovingAverage", "FP16Optimizer", "LARC", "LostUpdateMeter"];
const all: Readonly<Record<string, unknown>> = optim;

const messageOf = (name: string, given: readonly unknown[]): string => {
  try {
    new (all[name] as Constructor)(...given);
    return "nothing was thrown";
  } catch (error) {
    return (error as Error).message;
  }
};

/** Those whose message is not one line that says what is taken and what to pass. */
const unclear = (name: string, calls: readonly (readonly unknown[])[]): readonly string[] =>
  calls
    .map((given) => messageOf(name, given))
    .filter((message) => !/^\w+ takes .*: pass .+$/.test(message));

test("every class is checked here", () => {
  const classes = Object.keys(all).filter((name) => /^[A-Z]/.test(name) && !name.endsWith("Error"));
  const abstract = ["FlatOptimizer", "ParameterAverage"];
  const found = [
    ...optimizers,
    ...wrappers,
    ...abstract,
    "StochasticWeightAverage",
    "ReduceOnPlateau",
  ];
  expect(classes.sort()).toEqual(found.sort());
});

test.each(optimizers)("%s says what to pass in place of wrong arguments", (name) => {
  const found = unclear(name, [
    [],
    [null, flat],
    [flat, target],
    [target],
    [target, null],
    [target, 5],
    [target, [flat]],
    [target, [{ params: [] }]],
    [target, [null]],
    [target, flat, null],
    [target, flat, 0.1],
    [target, flat, []],
  ]);
  expect(found).toEqual([]);
});

test.each([...wrappers, "StochasticWeightAverage", "ReduceOnPlateau"])(
  "%s says what to pass in place of wrong arguments",
  (name) => {
    const inner = new optim.SGD(target, other);
    const calls: (readonly unknown[])[] = [[], [null], [5], [{}], [flat], [{ optimizer: null }]];
    if (wrappers.includes(name)) calls.push([inner, null], [inner, 0.5]);
    expect(unclear(name, calls)).toEqual([]);
  },
);
