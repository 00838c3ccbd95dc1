import { cpuRuntime, Generator } from "@halfstep/tensor";
import { expect, test } from "vitest";
import { requireArguments } from "./arguments.js";
import { Hardtanh } from "./layers/activations.js";
import { Linear } from "./layers/linear.js";
import { Sequential } from "./layers/sequential.js";
import { CrossEntropyLoss } from "./losses.js";

const runtime = cpuRuntime();
const generator = new Generator(1);

/** Constructors as callers without types call them. */
const make = (type: unknown, ...given: unknown[]): unknown =>
  new (type as new (...given: unknown[]) => unknown)(...given);

const linear =
  "new Linear(runtime, inFeatures, outFeatures, { generator, bias?, weightInit?, biasInit? })";

test.each([
  [[runtime, 2, 2], "the options are missing; pass an object with generator: new Generator(seed)"],
  [[runtime, 2, 2, generator], "in place of the options is a Generator; pass an object"],
  [[runtime, 2, 2, {}], "generator is missing; pass new Generator(seed)"],
  [[runtime, 2, 2, { generator: 5 }], "generator is 5; pass new Generator(seed)"],
  [
    [runtime, 2, 2, { generator, biases: false }],
    "there is no option biases; pass any of generator, bias, weightInit, biasInit",
  ],
  [[runtime, 2, undefined, { generator }], "outFeatures is missing; pass a whole number above 0"],
  [[runtime, "2", 2, { generator }], 'inFeatures is "2"; pass a whole number above 0'],
  [[runtime, 0, 2, { generator }], "inFeatures is 0; pass a whole number above 0"],
  [[2, 2, { generator }], "runtime is 2; pass gpuRuntime(device) or cpuRuntime()"],
])("a linear layer says what is wrong with its arguments: %#", (given, text) => {
  expect(() => make(Linear, ...given)).toThrow(`${linear}: ${text}`);
});

test("kinds are type errors, numbers and options range errors", () => {
  expect(() => make(Linear, runtime, 2, 2)).toThrow(TypeError);
  expect(() => make(Linear, runtime, -1, 2, { generator })).toThrow(RangeError);
  expect(() => make(Linear, runtime, 2, 2, { generator, rank: 1 })).toThrow(RangeError);
});

test("layers and options of losses are looked at, too", () => {
  expect(() => make(Sequential, [new Linear(runtime, 2, 2, { generator })])).toThrow(
    "layer 0 is no module; pass layers one by one",
  );
  expect(() => make(CrossEntropyLoss, 0.1)).toThrow(
    "new CrossEntropyLoss(options): in place of the options is 0.1; pass an object",
  );
});

test("lists, kernel sizes and what may be missing", () => {
  const check = (...given: unknown[]): void =>
    requireArguments("new Net(sizes, { kernelSize, alpha?, label? })", ...given);
  check([1, 2], { kernelSize: 3 });
  check([1], { kernelSize: [3, 5], alpha: -1, label: undefined });
  expect(() => check([], { kernelSize: 3 })).toThrow("sizes is a list of 0; pass a list of whole");
  expect(() => check([1], { kernelSize: [3] })).toThrow("kernelSize is a list of 1");
  expect(() => check([1], { kernelSize: 3, alpha: Number.NaN })).toThrow("alpha is NaN");
  expect(() => new Hardtanh(Number.NaN)).toThrow("min is NaN");
  expect(new Hardtanh(Number.NEGATIVE_INFINITY, 6).max).toBe(6);
  expect(() => check([1], null)).toThrow("in place of the options is null");
});
