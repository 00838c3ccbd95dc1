import { autocast } from "@halfstep/autocast";
import { requestTestDevice } from "@halfstep/device/testing";
import { describe, expect, test } from "vitest";
import * as f from "../src/functional.js";
import { cpuRuntime, gpuRuntime, grad, type Runtime, type Tensor } from "../src/index.js";
import type { GridSamplerOptions } from "../src/ops/index.js";
import type { IndexPart } from "../src/ops/index-by.js";

// Values and gradients as torch 2.13 gives them where a formula has an edge: ends of ranges, zeros, ties, and nothing at all.

const runtimes: readonly [string, () => Promise<Runtime>][] = [
  ["CPU", async () => cpuRuntime()],
  ["GPU", async () => gpuRuntime(await requestTestDevice())],
];

const { NaN: nan, POSITIVE_INFINITY: infinity } = Number;

type Shaped = readonly [values: readonly number[], shape: readonly number[]];

const numbersOf = async (x: Tensor | undefined): Promise<number[]> => {
  // Zeros of either sign are equal.
  return x ? [...(await x.toArray())].map((y) => y + 0) : [];
};

/** The result of a function, and the gradients of its sum. */
async function valuesAndGradients(
  runtime: Runtime,
  inputs: readonly Shaped[],
  apply: (...inputs: Tensor[]) => Tensor,
): Promise<number[][]> {
  const tensors = inputs.map(([values, shape]) =>
    runtime.tensor([...values], shape, { requiresGrad: true }),
  );
  const y = apply(...tensors);
  return Promise.all([y, ...grad(y.sum(), tensors)].map(numbersOf));
}

/** A matrix of 1 to 6. */
const matrix = (runtime: Runtime): Tensor => runtime.tensor([1, 2, 3, 4, 5, 6], [2, 3]);

const line = (...values: number[]): Shaped => [values, [values.length]];

describe.each(runtimes)("%s", (_, open) => {
  test("clamp takes the upper end where the ends are exchanged, and NaN where one is NaN", async () => {
    const runtime = await open();
    const clamped = (min: number, max: number): Promise<number[][]> =>
      valuesAndGradients(runtime, [line(-2, -1, 0, 2)], (x) => f.clamp(x, { min, max }));
    const none = [0, 0, 0, 0];
    expect(await clamped(1, -1)).toEqual([[-1, -1, -1, -1], none]);
    expect(await clamped(nan, 1)).toEqual([[nan, nan, nan, nan], none]);
    expect(await clamped(-1, nan)).toEqual([[nan, nan, nan, nan], none]);
    expect(await clamped(-infinity, infinity)).toEqual([
      [-2, -1, 0, 2],
      [1, 1, 1, 1],
    ]);
    const x = runtime.tensor([0, 1]);
    expect(await numbersOf(f.hardtanh(x, { max: nan }))).toEqual([nan, nan]);
    expect(() => f.hardtanh(x, { min: 1, max: -1 })).toThrow("hardtanh: min 1 is above max -1");
  });

  const image: Shaped = [
    [1, 2, 3, 4, 5, 6],
    [1, 2, 3, 1],
  ];
  const sampled = (
    runtime: Runtime,
    grid: readonly number[],
    options: GridSamplerOptions,
  ): Promise<number[][]> =>
    valuesAndGradients(runtime, [image, [grid, [1, 1, grid.length / 2, 2]]], (x, places) =>
      f.gridSampler(x, places, options),
    );

  test("gridSampler of places that are not finite gives NaN, and gradients of the other places", async () => {
    const runtime = await open();
    const grid = [nan, 0, 0, nan, infinity, 0, 0, -infinity, nan, 5, -5, infinity, 0, 0, 1e30, 0];
    expect(await sampled(runtime, grid, {})).toEqual([
      [nan, nan, nan, nan, nan, nan, 3.5, 0],
      [0, 0.5, 0, 0, 0.5, 0],
      [0, nan, nan, 0, 0, nan, nan, 0, 0, nan, nan, 0, 1.5, 3, 0, 0],
    ]);
    expect((await sampled(runtime, [nan, 0], { mode: "nearest" }))[0]).toEqual([0]);
  });

  test("gridSampler has no gradient by places on the border", async () => {
    const runtime = await open();
    const grid = [-1, -0.5, 1, 0.5, 0.25, -1, 0.25, 1, 0.25, -0.25];
    const expected = [0, 1.5, 0, 1.5, 1, 0, 1, 0, 1, 1.5];
    for (const padding of ["border", "reflection"] as const) {
      const options = { padding, alignCorners: true };
      expect((await sampled(runtime, grid, options))[2]).toEqual(expected);
    }
  });

  test("norms of p below 1 have gradients at 0, and so have distances", async () => {
    const runtime = await open();
    const normed = (ord: number): Promise<number[][]> =>
      valuesAndGradients(runtime, [line(0, 1, 4)], (x) => f.norm(x, { ord }));
    expect(await normed(0.5)).toEqual([[9], [0, 3, 1.5]]);
    expect(await normed(-1)).toEqual([[0], [0, 0, 0]]);
    expect(await normed(-0.5)).toEqual([[0], [0, 0, 0]]);
    const [a, b] = [line(1, 2, 3), line(1, 1, 7)];
    expect(await valuesAndGradients(runtime, [a, b], (x, y) => f.dist(x, y, 0.5))).toEqual([
      [9],
      [0, 3, -1.5],
      [0, -3, 1.5],
    ]);
    const rows: Shaped = [
      [0, 2, 9, 2, 25, 2],
      [3, 2],
    ];
    const slopes = [-2, 0, 0, 0, 2, 0];
    expect(await valuesAndGradients(runtime, [rows, rows], (x, y) => f.cdist(x, y, 0.5))).toEqual([
      [0, 9, 25, 9, 0, 16, 25, 16, 0],
      slopes,
      slopes,
    ]);
    expect(await valuesAndGradients(runtime, [rows], (x) => f.pdist(x, 0.5))).toEqual([
      [9, 25, 16],
      slopes,
    ]);
    const slices: Shaped = [
      [0, 1, 4, 9, 0, 0],
      [3, 2],
    ];
    const scaled = await valuesAndGradients(runtime, [slices], (x) => f.renorm(x, 0.5, 0, 0.5));
    expect(scaled[1]?.every(Number.isFinite)).toBe(true);
    expect(scaled[1]?.[0]).toBeCloseTo(0.5, 6);
    expect(scaled[1]?.[2]).toBeCloseTo(-0.006, 6);
  });

  test("second derivatives of deviations and norms of nothing but zeros are 0, and that of elu at 0", async () => {
    const runtime = await open();
    const twice = async (values: number[], apply: (x: Tensor) => Tensor): Promise<number[]> => {
      const x = runtime.tensor(values, [values.length], { requiresGrad: true });
      const [slope] = grad(apply(x).sum(), [x], { createGraph: true });
      return numbersOf(grad((slope as Tensor).sum(), [x])[0]);
    };
    expect(await twice([2, 2, 2], (x) => f.std(x))).toEqual([0, 0, 0]);
    expect(await twice([2], (x) => f.std(x, { correction: 0 }))).toEqual([0]);
    expect(await twice([0, 0], (x) => f.norm(x, { ord: 3 }))).toEqual([0, 0]);
    expect((await twice([0, -1, 1], (x) => f.elu(x, 2))).map((y) => y.toFixed(5))).toEqual([
      "0.00000",
      "0.73576",
      "0.00000",
    ]);
  });

  test("cdist and pdist of p = Infinity give every largest difference the whole gradient", async () => {
    const runtime = await open();
    const [a, b]: Shaped[] = [
      [
        [1, 2, 3, 4],
        [2, 2],
      ],
      [
        [0, 1, 1, 2],
        [2, 2],
      ],
    ];
    const of = (...inputs: Shaped[]): Promise<number[][]> =>
      valuesAndGradients(runtime, inputs, (x, y) =>
        y ? f.cdist(x, y, infinity) : f.pdist(x, infinity),
      );
    expect(await of(a as Shaped)).toEqual([[2], [-1, -1, 1, 1]]);
    expect(await of(a as Shaped, b as Shaped)).toEqual([
      [1, 0, 3, 2],
      [1, 1, 2, 2],
      [-2, -2, -1, -1],
    ]);
    const [none, nothing]: Shaped[] = [
      [[], [3, 0]],
      [[], [5, 0]],
    ];
    expect(await of(none as Shaped, nothing as Shaped)).toEqual([Array(15).fill(0), [], []]);
    expect(await of(none as Shaped)).toEqual([[0, 0, 0], []]);
  });

  test("index takes a tensor of shape [] as a number", async () => {
    const runtime = await open();
    const x = f.arange(runtime, 12).reshape([1, 3, 4]).expand([2, 3, 4]);
    const at = (index: number): Tensor => runtime.tensor(Int32Array.of(index), []);
    const ends = runtime.tensor(Uint32Array.of(0, 3));
    const both = runtime.tensor(Uint32Array.of(0, 1));
    const cases: [readonly IndexPart[], number[], number[]][] = [
      [
        [at(1), "all", ends],
        [3, 2],
        [0, 3, 4, 7, 8, 11],
      ],
      [
        [at(-1), "all", ends],
        [3, 2],
        [0, 3, 4, 7, 8, 11],
      ],
      [
        [at(1), { start: 1 }, ends],
        [2, 2],
        [4, 7, 8, 11],
      ],
      [
        [at(1), "...", ends],
        [3, 2],
        [0, 3, 4, 7, 8, 11],
      ],
      [
        [1, "all", ends],
        [3, 2],
        [0, 3, 4, 7, 8, 11],
      ],
      [
        [at(1), "new", both],
        [1, 2, 4],
        [0, 1, 2, 3, 4, 5, 6, 7],
      ],
      [
        [both, at(1)],
        [2, 4],
        [4, 5, 6, 7, 4, 5, 6, 7],
      ],
      [
        [both, "all", at(1)],
        [2, 3],
        [1, 5, 9, 1, 5, 9],
      ],
      [
        [both, "all", "new", at(1)],
        [2, 3, 1],
        [1, 5, 9, 1, 5, 9],
      ],
      [[both, at(1), ends], [2], [4, 7]],
      [[at(1), at(1)], [4], [4, 5, 6, 7]],
      [
        ["new", both, "all", ends],
        [2, 1, 3],
        [0, 4, 8, 3, 7, 11],
      ],
    ];
    for (const [parts, shape, values] of cases) {
      const y = f.index(x, parts);
      expect([y.shape, await numbersOf(y)]).toEqual([shape, values]);
    }
  });

  test("an axis of size 0 is split into pieces without elements", async () => {
    const nothing = (await open()).zeros([0, 2]);
    const shapes = (pieces: readonly Tensor[]) => pieces.map(({ shape }) => shape);
    expect(shapes(f.split(nothing, 2))).toEqual([[0, 2]]);
    expect(shapes(f.split(nothing, 0))).toEqual([[0, 2]]);
    expect(shapes(f.chunk(nothing, 3))).toEqual([
      [0, 2],
      [0, 2],
      [0, 2],
    ]);
    const x = matrix(await open());
    expect(() => f.split(x, 0)).toThrow("split: size 0 is no whole number above 0");
    expect(() => f.chunk(x, 0)).toThrow("chunk: count 0 is below 1");
  });

  test("gaussianNllLoss takes a variance of each row", async () => {
    const runtime = await open();
    const [input, target]: Shaped[] = [
      [
        [1, 2, 3, 5],
        [2, 2],
      ],
      [
        [0, 2.5, 3.5, 4],
        [2, 2],
      ],
    ];
    for (const shape of [[2, 1], [2]]) {
      const given = [input, target, [[0.5, 2], shape]] as Shaped[];
      const [loss, ...slopes] = await valuesAndGradients(runtime, given, (x, t, variance) =>
        f.gaussianNllLoss(x as Tensor, t as Tensor, variance as Tensor, { reduction: "none" }),
      );
      const torch = [0.6534264, -0.0965736, 0.4090736, 0.5965736];
      for (const [k, y] of torch.entries()) expect(loss?.[k]).toBeCloseTo(y, 6);
      expect(slopes).toEqual([
        [2, -1, -0.25, 0.5],
        [-2, 1, 0.25, -0.5],
        [-0.5, 0.34375],
      ]);
    }
    const x = matrix(runtime);
    expect(() => f.gaussianNllLoss(x, x, runtime.zeros([3]))).toThrow(
      "gaussianNllLoss: a variance [3] is neither one of each element of [2,3] nor one of each row",
    );
  });

  test("cross broadcasts", async () => {
    const runtime = await open();
    const [a, b, factors]: Shaped[] = [
      [
        [1, 2, 3],
        [1, 3],
      ],
      [
        [4, 5, 6, 7, 8, 10],
        [2, 3],
      ],
      [
        [1, 2, 3, 4, 5, 6],
        [2, 3],
      ],
    ];
    const weighted = (x: Tensor, y: Tensor): Tensor =>
      f.cross(x, y).mul(runtime.tensor([...(factors as Shaped)[0]], [2, 3]));
    expect(await valuesAndGradients(runtime, [a, b] as Shaped[], weighted)).toEqual([
      [-3, 12, -9, -16, 55, -36],
      [1, -8, 6],
      [0, 0, 0, 3, -6, 3],
    ]);
    expect(() => f.cross(runtime.zeros([3]), runtime.zeros([2, 3]))).toThrow(
      "cross needs two tensors of one rank with size 3 along axis -1, not [3] and [2,3]",
    );
    expect(() => f.cross(runtime.zeros([2, 1]), runtime.zeros([2, 3]))).toThrow(
      "cross needs two tensors of one rank with size 3 along axis -1, not [2,1] and [2,3]",
    );
  });

  test("transposed convolutions add as much as the dilation allows", async () => {
    const runtime = await open();
    const weighted = (y: Tensor): Tensor =>
      y.mul(f.arange(runtime, y.size + 1, { start: 1 }).reshape(y.shape));
    const lines = (
      x: readonly number[],
      weight: readonly number[],
      options: object,
    ): Promise<number[][]> =>
      valuesAndGradients(
        runtime,
        [
          [x, [1, x.length, 1]],
          [weight, [weight.length, 1, 1]],
        ],
        (input, kernel) =>
          weighted(f.convTranspose1d(input as Tensor, kernel as Tensor, undefined, options)),
      );
    expect(await lines([1, 2], [1, 1], { dilation: 2, outputPadding: 1 })).toEqual([
      [1, 4, 3, 8, 0],
      [4, 6],
      [5, 11],
    ]);
    const options = { dilation: 4, stride: 2, padding: 3, outputPadding: 3 };
    expect(await lines([1, 2, 3], [1, 3], options)).toEqual([
      [0, 12, 0, 24, 0, 54],
      [6, 12, 20],
      [6, 28],
    ]);
    const image: Shaped = [
      [1, 2],
      [1, 1, 2, 1],
    ];
    const kernel: Shaped = [
      [1, 3, 5, 7],
      [2, 2, 1, 1],
    ];
    const planes = await valuesAndGradients(runtime, [image, kernel], (x, weight) =>
      f.convTranspose2d(x as Tensor, weight as Tensor, undefined, {
        dilation: [1, 3],
        stride: [2, 1],
        outputPadding: [1, 2],
      }),
    );
    expect(planes).toEqual([
      [1, 2, 0, 3, 6, 0, 0, 5, 10, 0, 7, 14, 0, 0, 0, 0, 0, 0, 0, 0, 0],
      [16, 16],
      [3, 3, 3, 3],
    ]);
  });

  test("scalars are lines of one element, and indices of shape [] are one place", async () => {
    const runtime = await open();
    const x = runtime.tensor(3);
    const at = (...places: number[]): Tensor => runtime.tensor(Uint32Array.from(places));
    const zero = runtime.tensor(Uint32Array.of(0), []);
    const one = runtime.tensor(Uint32Array.of(1), []);
    const rows = matrix(runtime);
    const cases: [Tensor, number[], number[]][] = [
      [f.transpose(x, 0, -1), [], [3]],
      [f.gather(x, 0, zero), [], [3]],
      [f.gather(x, -1, at(0, 0)), [2], [3, 3]],
      [f.gather(rows.reshape([6]), 0, one), [], [2]],
      [f.indexSelect(x, 0, zero), [], [3]],
      [f.indexSelect(x, 0, at(0)), [], [3]],
      [f.indexSelect(rows, 0, one), [1, 3], [4, 5, 6]],
    ];
    for (const [y, shape, values] of cases)
      expect([y.shape, await numbersOf(y)]).toEqual([shape, values]);
    expect(() => f.transpose(x, 0, 1)).toThrow(
      "transpose: axis 1 is none of the dimensions of [1]",
    );
    expect(() => f.indexSelect(x, 0, at(0, 0))).toThrow(
      "indexSelect: of a scalar there is one place, not 2",
    );
  });

  test("embedding counts a negative paddingIndex from the end", async () => {
    const runtime = await open();
    const weight = matrix(runtime).reshape([3, 2]);
    const words = runtime.tensor(Uint32Array.of(0, 1, 2));
    const slopes = async (paddingIndex: number): Promise<number[] | undefined> => {
      const shaped: Shaped = [[...(await weight.toArray())], [3, 2]];
      const values = await valuesAndGradients(runtime, [shaped], (table) =>
        f.embedding(words, table, { paddingIndex }),
      );
      return values[1];
    };
    expect(await slopes(-1)).toEqual([1, 1, 1, 1, 0, 0]);
    expect(await slopes(-3)).toEqual([0, 0, 1, 1, 1, 1]);
    for (const wrong of [3, -4, 0.5, nan])
      expect(() => f.embedding(words, weight, { paddingIndex: wrong })).toThrow(
        `embedding: paddingIndex ${wrong} is none of the 3 words`,
      );
  });

  test("norms over nothing are empty", async () => {
    const runtime = await open();
    const x = runtime.variable([], [2, 0], { requiresGrad: true });
    const weight = runtime.variable([], [0], { requiresGrad: true });
    for (const y of [
      f.layerNorm(x, [0]),
      f.rmsNorm(x, [0], weight),
      f.layerNorm(x, 0, weight, weight),
    ]) {
      expect(await numbersOf(y)).toEqual([]);
      expect(y.shape).toEqual([2, 0]);
      f.backward(y.sum());
    }
    expect([x.grad?.shape, weight.grad?.shape]).toEqual([[2, 0], [0]]);
    const half = x.to("float16");
    const norm = (): string => f.layerNorm(half, 0, weight).dtype;
    expect([norm(), autocast({ dtype: "float16" }, norm)]).toEqual(["float16", "float32"]);
  });
});
