import type { Binding, DType } from "@halfstep/device";
import { describe, expect, it, test } from "vitest";
import * as kernels from "./index.js";
import { deviceTarget } from "./resident-target.js";

const target = kernels.cpuTarget();
type Own = Binding<kernels.CpuBuffer> & { readonly shape: readonly number[] };

const of = (length: number, dtype: DType = "float32"): Own => ({
  ...{ buffer: target.allocate(length * 4), offset: 0, length, dtype },
  shape: [length],
});

const source = { seed: 1, block: 0, stream: 0 };
const classes = { rows: 2, classes: 2 };
const labelled = () => ({ logits: of(4), labels: of(2, "uint32"), losses: of(2) });
const gradients = () => ({ ...labelled(), lossGradient: of(1), logitsGradient: of(4) });
const line = { outer: 1, size: 2, inner: 1 };
const normed = () => ({ input: of(4), out: of(4), mean: of(1), rstd: of(1) });
const group = { batch: 1, pixels: 1, groups: 1, width: 4 };
const channels = () => ({ mean: of(1), variance: of(1), weight: of(1), bias: of(1) });
const image = { batch: 1, height: 4, width: 4, inChannels: 1, outChannels: 1 };
const window = { kernelHeight: 1, kernelWidth: 1, stride: [1, 1], padding: [0, 0] } as const;

const { reduce, matmul, scan, topK, norm, conv2d, attention } = kernels;
const launchers = { reduce, matmul, scan, topK, norm, conv2d, attention };

describe("attributes out of range are refused on the host", () => {
  const ranges: readonly [string, () => unknown, string][] = [
    ...[-1, 2, Number.NaN].flatMap((p): [string, () => unknown, string][] => [
      [
        `dropout ${p}`,
        () => kernels.dropout({ input: of(4), out: of(4) }, source, p),
        `dropout: p is ${p}: it must be a number from 0 to 1`,
      ],
      [`bernoulli ${p}`, () => kernels.bernoulli(of(4), source, p), `bernoulli: p is ${p}`],
    ]),
    [
      "low above high",
      () => kernels.uniform(of(4), source, { low: 2, high: 1 }),
      "uniform: high is 1: it must be a number of at least 2",
    ],
    [
      "an infinite low",
      () => kernels.uniform(of(4), source, { low: -Infinity, high: 1 }),
      "uniform: low is -Infinity: it must be a finite number",
    ],
    [
      "a seed",
      () => kernels.uniform(of(4), { ...source, seed: 2 ** 60 }, { low: 0, high: 1 }),
      `a random source: seed is ${2 ** 60}: it must be a whole number`,
    ],
    [
      "a block",
      () => kernels.uniform(of(4), { ...source, block: 0.5 }, { low: 0, high: 1 }),
      "a random source: block is 0.5",
    ],
    [
      "a deviation",
      () => kernels.normal(of(4), source, { mean: 0, deviation: -1 }),
      "normal: deviation is -1",
    ],
    [
      "no integers",
      () => kernels.randomIntegers(of(4, "int32") as never, source, { low: 0, count: 0 }),
      "randomIntegers: count is 0: it must be a whole number from 1 to 4294967296",
    ],
    ...[1.5, Number.NaN].map((labelSmoothing): [string, () => unknown, string] => [
      `smoothing ${labelSmoothing}`,
      () => kernels.softmaxCrossEntropy(labelled(), { ...classes, labelSmoothing }),
      `softmaxCrossEntropy: labelSmoothing is ${labelSmoothing}`,
    ]),
    ...["avg", undefined].map((reduction): [string, () => unknown, string] => [
      `reduction ${reduction}`,
      () => kernels.softmaxCrossEntropyBackward(gradients(), { ...classes, reduction } as never),
      `reduction is ${JSON.stringify(reduction)}: choose one of mean, none`,
    ]),
    ["eps", () => kernels.norm(target, normed(), { ...group, eps: -5 }), "norm: eps is -5"],
    [
      "reduce",
      () => kernels.reduce(target, { input: of(2), out: of(1) }, { op: "avg" as "sum", ...line }),
      'reduce: op is "avg": choose one of sum, mean, max, min, prod, sumOfSquares',
    ],
    [
      "scan",
      () =>
        kernels.scan(
          target,
          { input: of(2), out: of(2) },
          { op: "cumsum" as "sum", rows: 1, columns: 2 },
        ),
      'scan: op is "cumsum"',
    ],
    [
      "scatter",
      () =>
        kernels.scatter(
          target,
          { base: of(2), index: of(1, "uint32"), source: of(1), out: of(2) },
          { ...line, count: 1, op: "max" as "add" },
        ),
      'scatter: op is "max"',
    ],
    [
      "gather",
      () =>
        kernels.gather(
          { input: of(2), index: of(1, "uint32"), out: of(1) },
          { ...line, count: 1, indexing: "all" as "each" },
        ),
      'gather: indexing is "all"',
    ],
    [
      "resample",
      () =>
        kernels.resample(
          { input: of(2), out: of(4) },
          { ...line, newSize: 4, mode: "bilinear" as "linear" },
        ),
      'resample: mode is "bilinear"',
    ],
    [
      "activation",
      () =>
        kernels.batchNormNormalize(
          { input: of(1), ...channels(), out: of(1) },
          { rows: 1, channels: 1, eps: 0, activation: "gelu" as "relu" },
        ),
      'batchNormNormalize: activation is "gelu"',
    ],
    [
      "sizes",
      () => kernels.reduce(target, { input: of(2), out: of(1) }, { op: "sum", outer: 1 } as never),
      "reduce: by the attributes input would have NaN elements",
    ],
    [
      "stridedCopy",
      () =>
        kernels.stridedCopy(
          { input: of(4), out: of(4) },
          { dimensions: [{ size: 4, stride: 1 }], offset: 3 },
        ),
      "stridedCopy reads elements 3 to 6 of an input of 4",
    ],
    [
      "a walk backwards",
      () =>
        kernels.stridedCopy(
          { input: of(4), out: of(4) },
          { dimensions: [{ size: 4, stride: -1 }], offset: 2 },
        ),
      "stridedCopy reads elements -1 to 2 of an input of 4",
    ],
  ];
  it.each(ranges)("%s", (_, call, message) => {
    expect(call).toThrow(RangeError);
    expect(call).toThrow(message);
  });

  const kinds: readonly [string, () => unknown, string][] = [
    [
      "no shape",
      () => kernels.elementwise(kernels.relu, [{ ...of(1), shape: undefined as never }], of(1)),
      "the shape of an elementwise operand is undefined",
    ],
    [
      "no shape of the result",
      () => kernels.elementwise(kernels.relu, [of(1)], { ...of(1), shape: undefined as never }),
      "the shape of an elementwise result is undefined",
    ],
    [
      "a dtype",
      () => kernels.elementwise(kernels.relu, [{ ...of(1), dtype: "float64" as never }], of(1)),
      'there is no dtype "float64"',
    ],
    [
      "a dtype of integers",
      () => kernels.randomIntegers(of(4) as never, source, { low: 0, count: 1 }),
      'randomIntegers draws int32 and uint32, not "float32"',
    ],
    [
      "no dilation",
      () =>
        kernels.conv2d(target, { input: of(16), weight: of(1), out: of(16) }, {
          ...image,
          ...window,
        } as never),
      "a convolution: dilation is undefined",
    ],
    [
      "no stride",
      () =>
        kernels.maxPool2d({ input: of(16), out: of(4) }, {
          batch: 1,
          height: 4,
          width: 4,
          channels: 1,
          window: [2, 2],
          padding: [0, 0],
        } as never),
      "pooling: stride is undefined",
    ],
    ...Object.entries(launchers).map(([name, launcher]): [string, () => unknown, string] => [
      `${name} without target`,
      () => (launcher as (...given: unknown[]) => void)({ input: of(1), out: of(1) }, {}),
      `${name} takes a target first, not an object`,
    ]),
  ];
  it.each(kinds)("%s", (_, call, message) => {
    expect(call).toThrow(TypeError);
    expect(call).toThrow(message);
  });
});

describe("copies", () => {
  const pairs: readonly (readonly [DType, DType])[] = [
    ["int32", "float32"],
    ["float32", "int32"],
    ["int32", "uint32"],
  ];
  const copies = {
    permute: (input: Own, out: Own) =>
      kernels.permute({ input, out }, { shape: [2, 2], order: [1, 0] }),
    stridedCopy: (input: Own, out: Own) =>
      kernels.stridedCopy({ input, out }, { dimensions: [{ size: 4, stride: 1 }] }),
    gather: (input: Own, out: Own) =>
      kernels.gather(
        { input, out, index: of(4, "uint32") },
        { outer: 1, size: 4, inner: 1, count: 4, indexing: "rows" },
      ),
    concatenate: (input: Own, out: Own) =>
      kernels.concatenate({ inputs: [input], out }, { outer: 1, sizes: [4], inner: 1 }),
  };
  test.each(Object.entries(copies))("%s does not convert integers", (name, copy) => {
    for (const [from, to] of pairs) {
      const call = () => copy(of(4, from), of(4, to));
      expect(call).toThrow(TypeError);
      expect(call).toThrow(
        `${name} moves elements without converting them, and cannot make ${to} of ${from}`,
      );
    }
    expect(() => copy(of(4, "float32"), of(4, "bfloat16"))).not.toThrow();
    expect(() => copy(undefined as never, of(4))).toThrow(`${name}: an operand is missing`);
  });

  test("places that are filled need no input", () => {
    const launch = kernels.stridedCopy(
      { input: of(4), out: of(6) },
      { dimensions: [{ size: 6, stride: 1, from: 1, to: 5 }], offset: -1 },
    );
    expect(() => target.launch(launch)).not.toThrow();
  });
});

test("a target is made of a device, not of a GPUDevice or a promise", () => {
  for (const wrong of [undefined, { queue: {} }, Promise.resolve({})])
    expect(() => deviceTarget(wrong as never)).toThrow("or await wrapDevice(gpuDevice)");
});
