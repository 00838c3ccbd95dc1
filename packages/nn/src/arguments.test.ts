import { cpuRuntime, Generator } from "@halfstep/tensor";
import { expect, test } from "vitest";
import { requireArguments } from "./arguments.js";
import * as nn from "./index.js";
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
    "in place of the options is 0.1; pass an object",
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

const layer = new Linear(runtime, 2, 2, options);

/** Right arguments of every class that takes a fixed number of them; others take none, or options that may be missing. */
const right: Readonly<Record<string, readonly unknown[]>> = {
  ...{ AdaptiveAvgPool2d: [1], PixelShuffle: [2], PixelUnshuffle: [2] },
  ...{ ELU: [1], LeakyReLU: [0.1], Hardtanh: [0, 1], PReLU: [runtime, 1, 0.25] },
  ...{
    BatchNorm1d: [runtime, 2, {}],
    BatchNorm2d: [runtime, 2, {}],
    BatchNorm3d: [runtime, 2, {}],
  },
  ...{ LayerNorm: [runtime, 2, {}], RMSNorm: [runtime, 2, {}], GroupNorm: [runtime, 1, 2, {}] },
  ...{ InstanceNorm2d: [runtime, 2, {}], Linear: [runtime, 2, 2, options] },
  ...{ Conv1d: [runtime, 2, 2, conv], ConvTranspose1d: [runtime, 2, 2, conv] },
  ...{ Conv2d: [runtime, 2, 2, conv], ConvTranspose2d: [runtime, 2, 2, conv] },
  ...{ MaxPool1d: [{ kernelSize: 2 }], AvgPool1d: [{ kernelSize: 2 }] },
  ...{ MaxPool2d: [{ kernelSize: 2 }], AvgPool2d: [{ kernelSize: 2 }] },
  ...{ LSTM: [runtime, 2, 2, options], GRU: [runtime, 2, 2, options] },
  ...{ LSTMCell: [runtime, 2, 2, options], GRUCell: [runtime, 2, 2, options] },
  ...{ MultiheadAttention: [runtime, 2, 1, options], Embedding: [runtime, 2, 2, options] },
  ...{ Dropout: [options], Flatten: [{}], GELU: [{}], Softplus: [{}], Upsample: [{ scale: 2 }] },
  ...{ ModuleList: [[layer]], ModuleDict: [{ layer }] },
  ...{ ReLU: [], Sigmoid: [], SiLU: [], Tanh: [] },
};

/** Those that take any number of layers, have tests of their own, or are no layers. */
const others = ["Generator", "Lora", "Loss", "Module", "Sequential", "StateDictError"];

const layers = Object.entries(nn).filter(
  ([name]) => /^[A-Z]/.test(name) && !others.includes(name),
) as [name: string, type: new (...given: readonly unknown[]) => unknown][];

test.each(layers)("%s refuses an argument too many", (name, type) => {
  const given = right[name] ?? (name.endsWith("Loss") ? [{}] : ["missing in the table"]);
  expect(() => make(type, ...given, undefined)).not.toThrow();
  const tooMany = (surplus: unknown) => () => make(type, ...given, surplus);
  expect(tooMany(5)).toThrow(/^new \w+\(.*\): 5 is an argument too many; leave it out$/);
  expect(tooMany(true)).toThrow("leave it out, because tensors are never changed in place");
});

test("torch's inplace is refused with the reason", () => {
  const reason = "leave it out, because tensors are never changed in place";
  expect(() => make(nn.ReLU, { inplace: true })).toThrow(
    `new ReLU(): an object is an argument too many; ${reason}`,
  );
  expect(() => make(nn.Dropout, { generator, inplace: true })).toThrow(
    `there is no option inplace; ${reason}`,
  );
});

const flags: Readonly<Record<string, readonly string[]>> = {
  ...{ Linear: ["bias"], Conv1d: ["bias"], ConvTranspose1d: ["bias"] },
  ...{ Conv2d: ["bias"], ConvTranspose2d: ["bias"], MultiheadAttention: ["bias"] },
  ...{ LSTMCell: ["bias"], GRUCell: ["bias"] },
  LSTM: ["bias", "batchFirst", "bidirectional"],
  GRU: ["bias", "batchFirst", "bidirectional"],
  ...{ LayerNorm: ["affine", "bias"], GroupNorm: ["affine", "bias"] },
  ...{ RMSNorm: ["affine"], InstanceNorm2d: ["affine"], BatchNorm2d: ["affine"] },
  ...{ MaxPool1d: ["ceilMode"], MaxPool2d: ["ceilMode"] },
  ...{ AvgPool1d: ["ceilMode", "countIncludePad"], AvgPool2d: ["ceilMode", "countIncludePad"] },
  Upsample: ["alignCorners"],
};

test.each(Object.entries(flags))("%s takes true and false alone for %s", (name, names) => {
  const given = right[name] as readonly unknown[];
  const { [name]: type } = Object.fromEntries(layers);
  for (const flag of names)
    for (const wrong of ["false", 0, 1, null]) {
      const wrongly = { ...(given.at(-1) as object), [flag]: wrong };
      expect(() => make(type, ...given.slice(0, -1), wrongly)).toThrow(
        `${flag} is ${JSON.stringify(wrong)}; pass true or false`,
      );
    }
});

test.each<[type: unknown, given: readonly unknown[], text: string]>([
  [Linear, [runtime, 2, 2, { generator, weightInit: "zeros" }], 'weightInit is "zeros"; pass a'],
  [nn.Embedding, [runtime, 2, 2, { generator, weightInit: 0 }], "weightInit is 0; pass a function"],
  [nn.Dropout, [{ generator, p: "0.5" }], 'p is "0.5"; pass a probability from 0 to 1'],
  [Softplus, [{ threshold: "20" }], 'threshold is "20"; pass a number'],
  [Hardtanh, [2, 1], "min is 2, above max, 1; pass min ≤ max"],
  [
    MaxPool2d,
    [{ kernelSize: [4, 2], padding: 2 }],
    "padding is 2; pass at most half of kernelSize",
  ],
  [AvgPool1d, [{ kernelSize: 3, padding: 2 }], "padding is 2; pass at most half of kernelSize, 3"],
  [Upsample, [{ scale: 0 }], "scale is 0; pass a number above 0"],
  [Upsample, [{ size: 4 }], "size is 4; pass a list of whole numbers above 0"],
  [Upsample, [], "neither a size nor a scale"],
  [nn.ModuleList, [layer], "modules is a Linear; pass a list of modules"],
  [nn.ModuleDict, [[layer]], "modules is a list of 1; pass modules by name"],
])("options of other kinds are refused when a layer is made: %#", (type, given, text) => {
  expect(() => make(type, ...given)).toThrow(text);
});

test("functions of models name what is no model, and what they do not have", () => {
  const state = {};
  const call =
    (fn: unknown, ...given: readonly unknown[]) =>
    () =>
      (fn as (...given: readonly unknown[]) => unknown)(...given);
  expect(call(nn.recordStatistics, {})).toThrow(
    "recordStatistics(model): model is an object; pass",
  );
  expect(call(nn.evaluationMode, undefined)).toThrow("model is missing; pass a module");
  expect(call(nn.loadTorchStateDict, layer, state, { strct: false })).toThrow("no option strct");
  expect(() => layer.loadStateDict(state, { strct: false } as object)).toThrow(
    "loadStateDict(state, { strict? }): there is no option strct; pass any of strict",
  );
  expect(() => layer.loadStateDict(state, { strict: "no" } as object)).toThrow(
    "pass true or false",
  );
  expect(() => layer.train("false" as never)).toThrow('mode is "false"; pass true or false');
});
