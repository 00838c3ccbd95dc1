import * as tensor from "@halfstep/tensor";
import { cpuRuntime, type Tensor } from "@halfstep/tensor";
import { ctcLoss } from "@halfstep/tensor/functional";
import { expect, test } from "vitest";
import * as nn from "./index.js";

// Values and gradients of the functions are compared with torch's in packages/tensor.
const runtime = cpuRuntime();
const [a, b, c] = [
  runtime.tensor([0.2, 0.7, 0.4, 0.9], [2, 2]),
  runtime.tensor([0.1, 0.6, 0.8, 0.3], [2, 2]),
  runtime.tensor([0.5, 0.3, 0.6, 0.2], [2, 2]),
];
const signs = runtime.tensor([1, -1, -1, 1], [2, 2]);
const labels = runtime.tensor(Uint32Array.of(1, 0));
const lists = runtime.tensor(Uint32Array.from([1, -1, 0, 1]), [2, 2]);
/** Logarithms of probabilities [length 2, batch 1, classes 2], and the label 0. */
const alignable = [
  a.log().reshape([2, 1, 2]),
  ...([[0], [2], [1]] as const).map((each, i) =>
    runtime.tensor(Uint32Array.from(each), i === 0 ? [1, 1] : [1]),
  ),
] as unknown as readonly [Tensor, Tensor, Tensor, Tensor];
const sum = { reduction: "sum" } as const;

test.each<[module: string, of: Tensor, by: Tensor]>([
  [
    "CrossEntropyLoss",
    new nn.CrossEntropyLoss(sum).forward(a, labels),
    tensor.crossEntropy(a, labels, sum),
  ],
  ["NLLLoss", new nn.NLLLoss(sum).forward(a, labels), tensor.nllLoss(a, labels, sum)],
  ["MSELoss", new nn.MSELoss(sum).forward(a, b), tensor.mseLoss(a, b, sum)],
  ["L1Loss", new nn.L1Loss(sum).forward(a, b), tensor.l1Loss(a, b, sum)],
  [
    "SmoothL1Loss",
    new nn.SmoothL1Loss({ ...sum, beta: 0.2 }).forward(a, b),
    tensor.smoothL1Loss(a, b, { ...sum, beta: 0.2 }),
  ],
  [
    "HuberLoss",
    new nn.HuberLoss({ ...sum, delta: 0.2 }).forward(a, b),
    tensor.huberLoss(a, b, { ...sum, delta: 0.2 }),
  ],
  [
    "KLDivLoss",
    new nn.KLDivLoss({ reduction: "batchMean" }).forward(a, b),
    tensor.klDiv(a, b, { reduction: "batchMean" }),
  ],
  ["PoissonNLLLoss", new nn.PoissonNLLLoss(sum).forward(a, b), tensor.poissonNllLoss(a, b, sum)],
  [
    "GaussianNLLLoss",
    new nn.GaussianNLLLoss(sum).forward(a, b, c),
    tensor.gaussianNllLoss(a, b, c, sum),
  ],
  ["BCELoss", new nn.BCELoss(sum).forward(a, b), tensor.binaryCrossEntropy(a, b, sum)],
  [
    "BCEWithLogitsLoss",
    new nn.BCEWithLogitsLoss({ posWeight: c }).forward(a, b),
    tensor.binaryCrossEntropyWithLogits(a, b, { posWeight: c }),
  ],
  [
    "SoftMarginLoss",
    new nn.SoftMarginLoss(sum).forward(a, signs),
    tensor.softMarginLoss(a, signs, sum),
  ],
  [
    "HingeEmbeddingLoss",
    new nn.HingeEmbeddingLoss(sum).forward(a, signs),
    tensor.hingeEmbeddingLoss(a, signs, sum),
  ],
  [
    "MarginRankingLoss",
    new nn.MarginRankingLoss(sum).forward(a, b, signs),
    tensor.marginRankingLoss(a, b, signs, sum),
  ],
  [
    "CosineEmbeddingLoss",
    new nn.CosineEmbeddingLoss(sum).forward(a, b, runtime.tensor([1, -1])),
    tensor.cosineEmbeddingLoss(a, b, runtime.tensor([1, -1]), sum),
  ],
  [
    "TripletMarginLoss",
    new nn.TripletMarginLoss({ swap: true }).forward(a, b, c),
    tensor.tripletMarginLoss(a, b, c, { swap: true }),
  ],
  [
    "MultiMarginLoss",
    new nn.MultiMarginLoss({ p: 2 }).forward(a, labels),
    tensor.multiMarginLoss(a, labels, { p: 2 }),
  ],
  [
    "MultiLabelMarginLoss",
    new nn.MultiLabelMarginLoss(sum).forward(a, lists),
    tensor.multilabelMarginLoss(a, lists, sum),
  ],
  [
    "CTCLoss",
    new nn.CTCLoss({ ...sum, blank: 1 }).forward(...alignable),
    ctcLoss(...alignable, { ...sum, blank: 1 }),
  ],
])("%s is its function with its options", async (name, of, by) => {
  const [value, expected] = [await of.item(), await by.item()];
  expect(Number.isFinite(value)).toBe(true);
  expect(value).toBe(expected);
  expect(nn).toHaveProperty(name);
});

test("the mean is the default", async () => {
  const mean = await new nn.L1Loss().forward(a, b).item();
  expect(mean * 4).toBeCloseTo(await new nn.L1Loss(sum).forward(a, b).item(), 5);
});

test.each<[name: keyof typeof nn, options: object, text: string]>([
  [
    "CrossEntropyLoss",
    { ignore_index: 1 },
    "there is no option ignore_index; pass any of weight, ",
  ],
  ["CrossEntropyLoss", { labelSmoothing: 2 }, "labelSmoothing is 2; pass a number from 0 to 1"],
  ["CrossEntropyLoss", { weight: [1, 2] }, "weight is a list of 2; pass a tensor"],
  ["NLLLoss", { ignoreIndex: "1" }, 'ignoreIndex is "1"; pass a whole number'],
  ["MSELoss", { reduction: "avg" }, 'reduction is "avg"; pass "mean" or "sum" or "none"'],
  ["MSELoss", { reduction: "batchMean" }, 'reduction is "batchMean"; pass "mean" or "sum"'],
  ["L1Loss", { beta: 1 }, "there is no option beta; pass any of reduction"],
  ["SmoothL1Loss", { beta: -1 }, "beta is -1; pass a number from 0 on"],
  ["HuberLoss", { delta: 0 }, "delta is 0; pass a number above 0"],
  ["KLDivLoss", { logTarget: "no" }, 'logTarget is "no"; pass true or false'],
  ["PoissonNLLLoss", { logInput: 0 }, "logInput is 0; pass true or false"],
  ["GaussianNLLLoss", { full: 1 }, "full is 1; pass true or false"],
  ["BCEWithLogitsLoss", { posWeight: 2 }, "posWeight is 2; pass a tensor"],
  ["CTCLoss", { blank: -1 }, "blank is -1; pass a whole number from 0 on"],
  ["MarginRankingLoss", { margin: "1" }, 'margin is "1"; pass a number'],
  ["TripletMarginLoss", { swap: 1 }, "swap is 1; pass true or false"],
  ["MultiMarginLoss", { p: 3 }, "p is 3; pass 1 or 2"],
])("%s refuses what its function would, when it is made: %#", (name, options, text) => {
  const all: Readonly<Record<string, unknown>> = nn;
  const type = all[name] as new (options: object) => unknown;
  expect(() => new type(options)).toThrow(text);
  expect(() => new type(options)).toThrow(`new ${name}({ `);
});

test("a loss of one's own has any options", () => {
  class Weighted extends nn.Loss<{ readonly factor: number }> {
    forward(x: Tensor): Tensor {
      return x.mul(this.options.factor);
    }
  }
  expect(new Weighted({ factor: 2 }).options).toEqual({ factor: 2 });
  expect(() => new Weighted(2 as never)).toThrow(
    "options is 2; pass an object, such as { reduction",
  );
});
