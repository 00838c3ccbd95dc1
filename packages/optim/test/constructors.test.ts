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

test("options of two values take true and false, and what is undefined counts as not given", () => {
  const flags: string[] = [];
  for (const name of optimizers) {
    const make = (options: object): optim.SGD<object> =>
      new (all[name] as typeof optim.SGD<object>)(target, [{ params: flat }], options);
    const [defaults] = make({}).paramGroups;
    const { params: _, ...own } = defaults as optim.ParameterGroup<object, optim.SGDGroupOptions>;
    for (const [flag, byDefault] of Object.entries(own)) {
      expect(make({ [flag]: undefined }).paramGroups[0]).toHaveProperty(flag, byDefault);
      if (typeof byDefault !== "boolean") continue;
      flags.push(flag);
      for (const wrong of ["no", "true", 0, 1, null])
        expect(messageOf(name, [target, flat, { [flag]: wrong }])).toBe(
          `${flag} is ${JSON.stringify(wrong)}: it must be true or false`,
        );
    }
  }
  expect([...new Set(flags)].sort().join(" ")).toBe(
    "adagradWMode adamWMode amsgrad biasCorrection centered decoupledWeightDecay gradAveraging initZero maximize nesterov regInsideMoment useNvlamb wdAfterMomentum",
  );
});

test("closures, and what methods do not take, are refused", () => {
  const inner = new optim.SGD(target, other);
  for (const optimizer of [inner, new optim.LARC(inner)]) {
    const step = (given: unknown) => () => optimizer.step(given as object);
    const zeroGrad = optimizer.zeroGrad as (given: unknown) => void;
    expect(step(() => 1)).toThrow("step() calls no closure: call loss.backward() first");
    expect(step({ found_inf: 1 })).toThrow('step() has no option "found_inf": it has foundInf,');
    expect(step(null)).toThrow("step() takes { foundInf?, gradScale? }, not null");
    expect(() => zeroGrad.call(optimizer, { setToNone: true })).toThrow(
      "zeroGrad() takes no arguments, and was given an object: leave it out",
    );
    expect(() => optimizer.loadStateDict({} as never)).toThrow(
      "the state has no member algorithm, so it is no state of an optimizer: load what",
    );
  }
  const text = (name: string, options: object): string => messageOf(name, [inner, options]);
  expect(text("LARC", { trust_coefficient: 1 })).toMatch('LARC has no option "trust_coefficient"');
  expect(text("LARC", { clip: "no" })).toBe('clip is "no": it must be true or false');
  expect(text("LostUpdateMeter", { evry: 2 })).toMatch('LostUpdateMeter has no option "evry"');
});
