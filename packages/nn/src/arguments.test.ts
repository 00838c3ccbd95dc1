import { cpuRuntime, Generator } from "@halfstep/tensor";
import { expect, test } from "vitest";
import { requireArguments } from "./arguments.js";
import {
  AvgPool1d,
  BatchNorm2d,
  Conv1d,
  Conv2d,
  ConvTranspose1d,
  ConvTranspose2d,
  CrossEntropyLoss,
  Flatten,
  GRU,
  Hardtanh,
  LayerNorm,
  Linear,
  LSTM,
  MaxPool2d,
  MultiheadAttention,
  Sequential,
  Softplus,
  Upsample,
} from "./index.js";

const runtime = cpuRuntime();
const generator = new Generator(1);
const options = { generator };

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

test.each([
  [new Linear(runtime, 2, 2, options), "Linear"],
  [new Conv2d(runtime, 1, 1, { kernelSize: 1, generator }), "Conv2d"],
  [new BatchNorm2d(runtime, 2), "BatchNorm2d"],
  [new Upsample({ scale: 2 }), "Upsample"],
  [new MultiheadAttention(runtime, 4, 2, options), "MultiheadAttention"],
  [new GRU(runtime, 2, 2, options), "GRU"],
  [new Flatten(), "Flatten"],
])("layers name inputs that are no tensors: %#", (layer, name) => {
  const forward = (x?: unknown): unknown => layer.forward(x as never);
  expect(() => forward([1, 2])).toThrow(`${name} needs a tensor, not a list of 2;`);
  expect(() => forward()).toThrow(`${name} needs a tensor, not undefined;`);
});

test("states of recurrent layers are tensors of kinds that they have", () => {
  const x = runtime.zeros([1, 1, 2]);
  const forward = (layer: GRU | LSTM, states: unknown): unknown =>
    layer.forward(x, states as object);
  const gru = new GRU(runtime, 2, 2, options);
  expect(() => forward(gru, { cell: x })).toThrow("GRU: the states before the first step");
  expect(() => forward(gru, { hidden: 1 })).toThrow("GRU needs a tensor, not 1;");
  const lstm = new LSTM(runtime, 2, 2, options);
  expect(() => forward(lstm, { cell: [0, 0] })).toThrow("LSTM needs a tensor, not a list of 2;");
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

const conv = { kernelSize: 3, generator };
const pass = { one: "pass a whole number", two: ", or [height, width]" };

test.each<[type: unknown, given: readonly unknown[], text: string]>([
  [
    Conv2d,
    [runtime, 3, 6, { ...conv, groups: 2 }],
    "groups is 2; pass a whole number that divides",
  ],
  [Conv2d, [runtime, 4, 6, { ...conv, groups: 4 }], "that divides 4 and 6 channels"],
  [Conv1d, [runtime, 4, 6, { ...conv, groups: 4 }], "that divides 4 and 6 channels"],
  [Conv1d, [runtime, 4, 6, { ...conv, groups: 0.5 }], "groups is 0.5; pass"],
  [ConvTranspose1d, [runtime, 3, 6, { ...conv, groups: 2 }], "that divides 3 and 6 channels"],
  [ConvTranspose2d, [runtime, 3, 6, { ...conv, groups: 2 }], "that divides 3 and 6 channels"],
  [Conv2d, [runtime, 3, 6, { ...conv, padding: "same" }], `padding is "same"; ${pass.one} from 0`],
  [Conv2d, [runtime, 3, 6, { ...conv, padding: [1, -1] }], `padding is [1,-1]; ${pass.one}`],
  [Conv2d, [runtime, 3, 6, { ...conv, stride: 0 }], `stride is 0; ${pass.one} above 0${pass.two}`],
  [Conv2d, [runtime, 3, 6, { ...conv, dilation: 1.5 }], "dilation is 1.5; pass"],
  [Conv1d, [runtime, 3, 6, { ...conv, padding: "same" }], `padding is "same"; ${pass.one} from 0`],
  [Conv1d, [runtime, 3, 6, { ...conv, kernelSize: [1, 3] }], "kernelSize is a list of 2; pass"],
  [ConvTranspose1d, [runtime, 3, 6, { ...conv, padding: null }], "padding is null; pass"],
  [ConvTranspose2d, [runtime, 3, 6, { ...conv, padding: -1 }], "padding is -1; pass"],
  [
    ConvTranspose2d,
    [runtime, 3, 6, { ...conv, stride: [2, 3], outputPadding: 2 }],
    "outputPadding is 2; pass less than the stride, [2,3]",
  ],
  [MaxPool2d, [{ kernelSize: 2, stride: 0 }], "stride is 0; pass"],
  [AvgPool1d, [{ kernelSize: 2, padding: "same" }], 'padding is "same"; pass'],
  [LSTM, [runtime, 1, 1, { generator, numLayers: 0 }], `numLayers is 0; ${pass.one} above 0`],
  [GRU, [runtime, 1, 1, { generator, numLayers: 1.5 }], `numLayers is 1.5; ${pass.one} above 0`],
  [
    BatchNorm2d,
    [runtime, 3, { momentum: null }],
    "momentum is null; pass a number from 0 to 1; running",
  ],
  [BatchNorm2d, [runtime, 3, { momentum: Number.NaN }], "momentum is NaN; pass a number"],
  [BatchNorm2d, [runtime, 3, { momentum: 2 }], "momentum is 2; pass a number from 0 to 1"],
  [BatchNorm2d, [runtime, 3, { eps: -1 }], "eps is -1; pass a number from 0 on"],
  [LayerNorm, [runtime, 3, { eps: "1e-5" }], 'eps is "1e-5"; pass a number'],
  [Softplus, [{ beta: 0 }], "beta is 0; pass a number above 0"],
])("what forward would refuse is refused by the constructor: %#", (type, given, text) => {
  const { name } = type as { readonly name: string };
  expect(() => make(type, ...given)).toThrow(text);
  expect(() => make(type, ...given)).toThrow(`new ${name}(`);
});

test("dropout is a probability", () => {
  const wrong = (dropout: unknown) => ({ generator, dropout });
  expect(() => make(LSTM, runtime, 2, 2, wrong(1.5))).toThrow(
    "dropout is 1.5; pass a probability from 0 to 1",
  );
  expect(() => make(GRU, runtime, 2, 2, wrong("0.5"))).toThrow(
    'dropout is "0.5"; pass a probability from 0 to 1',
  );
  expect(() => make(MultiheadAttention, runtime, 4, 2, wrong(-0.1))).toThrow(
    "dropout is -0.1; pass a probability from 0 to 1",
  );
});
