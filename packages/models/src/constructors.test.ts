import * as nn from "@halfstep/nn";
import { cpuRuntime, Generator } from "@halfstep/tensor";
import { expect, test } from "vitest";
import * as models from "./index.js";

const runtime = cpuRuntime();
const generator = new Generator(1);

const conv = { kernelSize: 3, generator };
const bert = {
  ...{ seed: 1, vocabSize: 8, hiddenSize: 4, numHiddenLayers: 1, numAttentionHeads: 1 },
  ...{ intermediateSize: 4, maxPositionEmbeddings: 4 },
};

/** Arguments of every module that has any, and how many of them must be there. */
const constructors: Readonly<Record<string, readonly [given: readonly unknown[], needed: number]>> =
  {
    Linear: [[runtime, 2, 3, { generator }], 4],
    Conv1d: [[runtime, 2, 3, conv], 4],
    Conv2d: [[runtime, 2, 3, conv], 4],
    ConvTranspose1d: [[runtime, 2, 3, conv], 4],
    ConvTranspose2d: [[runtime, 2, 3, conv], 4],
    Embedding: [[runtime, 4, 3, { generator }], 4],
    MultiheadAttention: [[runtime, 4, 2, { generator }], 4],
    BatchNorm1d: [[runtime, 3, {}], 2],
    BatchNorm2d: [[runtime, 3, {}], 2],
    BatchNorm3d: [[runtime, 3, {}], 2],
    LayerNorm: [[runtime, 3, {}], 2],
    RMSNorm: [[runtime, [3], {}], 2],
    GroupNorm: [[runtime, 2, 4, {}], 3],
    Dropout: [[{ generator }], 1],
    MaxPool2d: [[{ kernelSize: 2 }], 1],
    AvgPool2d: [[{ kernelSize: 2 }], 1],
    MaxPool1d: [[{ kernelSize: 2 }], 1],
    AvgPool1d: [[{ kernelSize: 2 }], 1],
    AdaptiveAvgPool2d: [[[2, 3]], 1],
    PixelShuffle: [[2], 1],
    PixelUnshuffle: [[2], 1],
    InstanceNorm2d: [[runtime, 3, { affine: true }], 2],
    Upsample: [[{ scale: 2 }], 1],
    LSTM: [[runtime, 2, 3, { generator }], 4],
    GRU: [[runtime, 2, 3, { generator }], 4],
    LSTMCell: [[runtime, 2, 3, { generator }], 4],
    GRUCell: [[runtime, 2, 3, { generator }], 4],
    PReLU: [[runtime, 2, 0.25], 1],
    GELU: [[{ approximate: "tanh" }], 0],
    Softplus: [[{ beta: 2 }], 0],
    ELU: [[1], 0],
    LeakyReLU: [[0.01], 0],
    Hardtanh: [[-1, 1], 0],
    Mlp: [[runtime, { sizes: [2, 3], seed: 1 }], 2],
    DigitsCnn: [[runtime, { seed: 1 }], 2],
    ResNet: [[runtime, { seed: 1, layers: [1, 1, 1], width: 2, classes: 2 }], 2],
    UNet: [[runtime, { seed: 1, width: 2 }], 2],
    GPT: [[runtime, { seed: 1, vocabSize: 8, blockSize: 4, nLayer: 1, nHead: 1, nEmbd: 4 }], 2],
    BertModel: [[runtime, bert], 2],
    BertForMaskedLM: [[runtime, bert], 2],
    BertForSequenceClassification: [[runtime, { ...bert, numLabels: 2 }], 2],
    BertForTokenClassification: [[runtime, { ...bert, numLabels: 2, crf: true }], 2],
    CRF: [[runtime, 3, { generator }], 3],
  };

type Constructor = new (...given: readonly unknown[]) => unknown;
const exported: Readonly<Record<string, unknown>> = { ...nn, ...models };

/** Modules without arguments, with layers or only options as arguments, and what only other modules make or extend. */
const others = [
  "Module",
  "Flatten",
  "ReLU",
  "Sigmoid",
  "SiLU",
  "Tanh",
  "Sequential",
  "ModuleList",
  "ModuleDict",
  "GPTModel",
  "Loss",
];

const isModule = (value: unknown): boolean =>
  value === nn.Module || (typeof value === "function" && value.prototype instanceof nn.Module);

test("every module that takes arguments is called here", () => {
  const losses = Object.keys(nn).filter((name) => /^[A-Z].*Loss$/.test(name));
  const modules = Object.keys(exported).filter((name) => isModule(exported[name]));
  expect(modules.sort()).toEqual([...Object.keys(constructors), ...others, ...losses].sort());
});

/** In place of an argument. */
const wrong: readonly unknown[] = [
  null,
  "two",
  true,
  [],
  [0.5],
  Number.NaN,
  {},
  runtime,
  generator,
];

/** What engines say of what a program did not check. */
const raw = /Cannot |is not a function|is not iterable|undefined|Invalid|null \(|destructur/;

test.each(Object.entries(constructors))(
  "%s refuses what it cannot be made of in one line",
  (name, [given, needed]) => {
    const type = exported[name] as Constructor;
    const found: string[] = [];
    const call = (what: string, args: readonly unknown[], mustThrow: boolean): void => {
      try {
        new type(...args);
        if (mustThrow) found.push(`${what}: nothing was thrown`);
      } catch (error) {
        const { message } = error as Error;
        if (
          !/^(new )?\w+.*: .*; (pass|give it) /.test(message) ||
          /\n/.test(message) ||
          raw.test(message)
        )
          found.push(`${what}: ${message}`);
      }
    };
    expect(() => new type(...given)).not.toThrow();
    for (let count = 0; count < needed; count++)
      call(`${count} arguments`, given.slice(0, count), true);
    for (const i of given.keys())
      for (const other of wrong)
        call(
          `argument ${i}: ${String(other)}`,
          given.with(i, other),
          i === 0 && needed > 1 && other !== runtime,
        );
    expect(found).toEqual([]);
  },
);
