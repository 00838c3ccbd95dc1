import { readFileSync } from "node:fs";
import { requestTestDevice } from "@halfstep/device/testing";
import { expect, test } from "vitest";
import * as f from "../src/functional.js";
import {
  argmin,
  cpuRuntime,
  Generator,
  gpuRuntime,
  type Runtime,
  type Tensor,
} from "../src/index.js";
import { type ForwardCase, forwardMismatches, places } from "./forward-check.js";
import { type GradientsByTorch, gradientsUnlikeTorch } from "./golden.js";

/** Values and gradients by torch: see golden/functional.py. */
const golden = JSON.parse(
  readFileSync(new URL("golden/functional.json", import.meta.url), "utf8"),
) as Readonly<
  Record<
    string,
    Pick<ForwardCase, "inputs" | "shape"> & {
      readonly values: readonly number[];
      /** Null of places. */
      readonly gradients: GradientsByTorch["gradients"] | null;
    }
  >
>;

type Apply = (x: Tensor, y: Tensor, z: Tensor, runtime: Runtime) => Tensor;

const ceiled = { window: 3, stride: 2, padding: 1, ceilMode: true } as const;
const far = { window: 2, stride: 3, padding: 1, ceilMode: true } as const;
const windows = { window: [3, 2], stride: [2, 1], padding: [1, 0], dilation: [1, 2] } as const;

const computed: Readonly<Record<string, Apply>> = {
  clone: (x) => f.clone(x),
  repeat: (x) => f.repeat(x, [2, 1, 2, 3]),
  tile: (x) => f.tile(x, [2, 3]),
  tril: (x) => f.tril(x, { diagonal: -1 }),
  triu: (x) => f.triu(x, { diagonal: 1 }),
  outer: (a, b) => f.outer(a, b),
  "lerp near": (a, b) => f.lerp(a, b, 0.25),
  "lerp far": (a, b) => f.lerp(a, b, 0.75),
  "lerp by a tensor": (a, b, w) => f.lerp(a, b, w),
  index: (x) => f.index(x, [-1, { start: 1, end: 4, step: 2 }, "new", "all"]),
  "index by places": (x, _, __, runtime) =>
    f.index(x, ["all", runtime.tensor(Uint32Array.of(4, 0, 4))]),
  "index by two": (x, _, __, runtime) =>
    f.index(x, [
      runtime.tensor(Int32Array.of(2, -3), [2, 1]),
      runtime.tensor(Int32Array.of(4, -1, 0)),
    ]),
  "index by two apart": (x, _, __, runtime) =>
    f.index(x, [
      runtime.tensor(Uint32Array.of(2, 0)),
      { start: 1, end: 3 },
      runtime.tensor(Int32Array.of(-1, 0)),
    ]),
  "index, the rest": (x) => f.index(x, ["...", 1]),
  sort: (x) => f.sort(x, { axis: 1 }).values,
  argsort: (x) => f.argsort(x, { axis: 1 }),
  "argsort, descending": (x) => f.argsort(x, { axis: 0, descending: true }),
  argmin: (x) => argmin(x, 1),
  median: (x) => f.median(x, 1).values,
  "median of two": (x) => f.median(x, 2).values,
  "median of all": (x) => f.median(x),
  "median of ties": (x) => f.median(x),
  "sort of a scalar": (x) => f.sort(x).values,
  "argsort of a scalar": (x) => f.argsort(x),
  "median of a scalar": (x) => f.median(x, 0).values,
  "topK of a scalar": (x) => f.topK(x, 1, { largest: false }).values,
  "topK's place in a scalar": (x) => f.topK(x, 1, { axis: 0 }).indices,
  "cumsum of a scalar": (x) => f.cumsum(x, -1),
  "cumprod of a scalar": (x) => f.cumprod(x, 0),
  "median's places": (x) => f.median(x, 1).indices,
  unfold: (x) => f.unfold(x, windows),
  fold: (x) => f.fold(x, [5, 6], windows),
  adaptiveAvgPool2d: (x) => f.adaptiveAvgPool2d(x, [3, 4]),
  "adaptiveAvgPool2d of divisors": (x) => f.adaptiveAvgPool2d(x, [1, 3]),
  adaptiveAvgPool1d: (x) => f.adaptiveAvgPool1d(x, 3),
  maxPool1d: (x) => f.maxPool1d(x, { window: 3, stride: 2, padding: 1 }),
  avgPool1d: (x) => f.avgPool1d(x, { window: 2 }),
  "maxPool2d, ceiled": (x) => f.maxPool2d(x, ceiled),
  "maxPool2d of pairs, ceiled": (x) => f.maxPool2d(x, { window: 2, ceilMode: true }),
  "maxPool2d, far": (x) => f.maxPool2d(x, far),
  "avgPool2d, ceiled": (x) => f.avgPool2d(x, ceiled),
  "avgPool2d, far": (x) => f.avgPool2d(x, far),
  "avgPool2d without padding": (x) =>
    f.avgPool2d(x, { window: 3, stride: 2, padding: 1, countIncludePad: false }),
  "avgPool2d, ceiled, without padding": (x) =>
    f.avgPool2d(x, { ...ceiled, countIncludePad: false }),
  "maxPool1d, ceiled": (x) => f.maxPool1d(x, { window: 4, ceilMode: true }),
  "avgPool1d, ceiled": (x) => f.avgPool1d(x, { window: 4, stride: 3, padding: 2, ceilMode: true }),
  "avgPool1d without padding": (x) =>
    f.avgPool1d(x, { window: 4, padding: 2, ceilMode: true, countIncludePad: false }),
  instanceNorm: (x, weight, bias) => f.instanceNorm(x, weight, bias),
  pixelShuffle: (x) => f.pixelShuffle(x, 2),
  pixelUnshuffle: (x) => f.pixelUnshuffle(x, 2),
  "upsample by 1.5, bilinear": (x) => f.upsampleBilinear2d(x, { scale: 1.5 }),
  "upsample by 1.5, bicubic": (x) => f.upsampleBicubic2d(x, { scale: 1.5 }),
  "upsample by 1.5, nearest-exact": (x) => f.upsampleNearest2d(x, { scale: 1.5, exact: true }),
  "upsample by 0.6": (x) => f.upsampleLinear1d(x, { scale: 0.6 }),
  conv3d: (x, weight, bias) => f.conv3d(x, weight, bias, { padding: [1, 0, 1] }),
  "conv3d of groups": (x, weight, bias) =>
    f.conv3d(x, weight, bias, { stride: [1, 1, 2], dilation: [2, 1, 1], groups: 2 }),
};

const cases = Object.entries(golden).map(
  ([name, { inputs, shape, values }]): ForwardCase => ({
    name,
    inputs: inputs.map((x) => ({ shape: x.shape, values: Float64Array.from(x.values) })),
    apply: (x, runtime) =>
      (computed[name] as Apply)(
        ...(x.concat(x, x).slice(0, 3) as [Tensor, Tensor, Tensor]),
        runtime,
      ),
    expected: () => values,
    shape,
  }),
);

test.each(places.filter(([place, dtype]) => place === "CPU" || dtype !== "float32"))(
  "functions give torch's values: %s, %s",
  async (_, dtype, open) => {
    expect(Object.keys(computed)).toEqual(Object.keys(golden));
    expect(await forwardMismatches(await open(), dtype, cases)).toEqual([]);
  },
);

const differentiable = cases.flatMap((each): GradientsByTorch[] => {
  const gradients = golden[each.name]?.gradients;
  return gradients ? [{ ...each, gradients }] : [];
});

test("gradients are torch's: CPU", async () => {
  const runtime = cpuRuntime({ arithmetic: "float64" });
  expect(await gradientsUnlikeTorch(runtime, differentiable)).toEqual([]);
});

// gradients.test.ts compares the GPU with float64 for every op: an eighth of the cases suffices here.
test("gradients are torch's: GPU", async () => {
  const runtime = gpuRuntime(await requestTestDevice());
  const some = differentiable.filter((_, i) => i % 8 === 0);
  expect(await gradientsUnlikeTorch(runtime, some, 2e-5)).toEqual([]);
});

const listed = async (x: Tensor): Promise<number[]> => [...(await x.toArray())];

test("tensors are made without data", async () => {
  const runtime = cpuRuntime();
  expect(await listed(f.arange(runtime, 3))).toEqual([0, 1, 2]);
  const down = f.arange(runtime, -2, { start: 5, step: -3, dtype: "int32" });
  expect([down.dtype, ...(await listed(down))]).toEqual(["int32", 5, 2, -1]);
  expect(() => f.arange(runtime, 3, { step: -1 })).toThrow("no steps of -1");
  const line = await listed(f.linspace(runtime, 0, 0.3, 4));
  expect(line).toEqual([0, 0.1, 0.2, 0.3].map(Math.fround));
  expect(await listed(f.linspace(runtime, 7, 9, 1))).toEqual([7]);
  expect(await listed(f.eye(runtime, 2, { columns: 3 }))).toEqual([1, 0, 0, 0, 1, 0]);
});

test("NaN is the largest, and the median of its line", async () => {
  const x = cpuRuntime().tensor([2, Number.NaN, 1, 3, 5, 4], [2, 3]);
  const sorted = f.sort(x);
  expect(await listed(sorted.values)).toEqual([1, 2, Number.NaN, 3, 4, 5]);
  const { values, indices } = f.median(x, 1);
  expect([await listed(values), await listed(indices)]).toEqual([
    [Number.NaN, 4],
    [1, 2],
  ]);
});

test("the median of no numbers is NaN, and an axis or integers without elements have none", async () => {
  const runtime = cpuRuntime();
  const none = runtime.tensor([], [0, 3], { dtype: "float16", requiresGrad: true });
  const median = f.median(none);
  expect([median.dtype, median.shape, await median.item()]).toEqual(["float16", [], Number.NaN]);
  f.backward(median);
  expect([none.grad?.shape, await listed(none.grad as Tensor)]).toEqual([[0, 3], []]);
  const along = f.median(none, 1);
  expect([along.values.shape, await listed(along.indices)]).toEqual([[0], []]);
  expect(() => f.median(none, 0)).toThrow("median: axis 0 of [0,3] has no elements");
  expect(() => f.median(runtime.tensor(new Int32Array(0)))).toThrow("no integer is the median");
  expect(() => f.topK(runtime.tensor(1, []), 2)).toThrow("k is 2, but an axis of 1 needs 1 to 1");
});

test.each(places.filter(([, dtype]) => dtype === "float32"))(
  "zeros of both signs are equal, and no other number is: %s",
  async (_, __, open) => {
    const { NaN: nan, POSITIVE_INFINITY: inf } = Number;
    const tiny = 2 ** -149;
    const line = [nan, 0, -tiny, inf, -0, tiny, -inf, 3.4028234663852886e38, -1, 0, nan];
    const runtime = await open();
    const order = await listed(f.argsort(runtime.tensor(line)));
    expect(order).toEqual([6, 8, 2, 1, 4, 9, 5, 7, 3, 0, 10]);
    // Several runs of 256, with every number twice.
    const long = Float32Array.from({ length: 1200 }, (_, i) => (i * 7) % 600);
    const sorted = await listed(f.sort(runtime.tensor(long), { descending: true }).values);
    expect(sorted).toEqual(sorted.map((_, i) => 599 - (i >> 1)));
  },
);

test("infinities and NaN stay in the windows that they are in", async () => {
  const x = cpuRuntime().tensor([1, 2, Number.NaN, 3, 4], [1, 5, 1]);
  expect(await listed(f.adaptiveAvgPool1d(x, 3))).toEqual([1.5, Number.NaN, 3.5]);
});

test("indices may be int32, and empty lines are sorted", async () => {
  const runtime = cpuRuntime();
  const x = runtime.tensor([1, 2, 3, 4, 5, 6], [2, 3]);
  const index = runtime.tensor(Int32Array.of(2, 0, -1));
  expect(await listed(f.indexSelect(x, 1, index))).toEqual([3, 1, Number.NaN, 6, 4, Number.NaN]);
  const put = f.indexPut(x, runtime.tensor(Int32Array.of(-1)), runtime.tensor(0));
  expect(await listed(put)).toEqual([1, 2, 3, 0, 0, 0]);
  expect(await listed(f.oneHot(index, 2))).toEqual([0, 0, 1, 0, 0, 0]);
  const empty = f.sort(runtime.tensor([], [2, 0]));
  expect([empty.values.shape, empty.indices.shape]).toEqual(Array(2).fill([2, 0]));
  expect(() => f.index(x, ["...", "..."])).toThrow('"..." once at most');
});

test("indices that a step computes as int32 are read as the numbers that they are", async () => {
  const runtime = cpuRuntime();
  const x = runtime.tensor([1, 2, 3, 4, 5, 6], [2, 3]);
  const given = runtime.tensor(Int32Array.of(1, 0));
  const picked = await runtime.step(() => f.index(x, [given.sub(2), given.sub(1)]).mul(10));
  expect(await listed(picked)).toEqual([40, 30]);
});

test("places and different elements are found between steps", async () => {
  const x = cpuRuntime().tensor([3, 0, -1, 3, 0, 3], [2, 3]);
  const { values, inverse, counts } = await f.unique(x);
  expect(await Promise.all([values, inverse, counts].map(listed))).toEqual([
    [-1, 0, 3],
    [2, 1, 0, 2, 1, 2],
    [1, 2, 3],
  ]);
  const nonzero = await f.nonzero(x);
  expect([nonzero.shape, await listed(nonzero)]).toEqual([
    [4, 2],
    [0, 0, 0, 2, 1, 0, 1, 2],
  ]);
});

test.each(places.filter(([, dtype]) => dtype !== "float16"))(
  "a class that cannot be drawn is an index out of range: %s, %s",
  async (_, __, open) => {
    const runtime = await open();
    const generator = new Generator(7);
    const rows = [
      [0, 0, 0],
      [0, -1, 0],
      [1, Number.NaN, 1],
      [Number.NaN, Number.NaN, Number.NaN],
      [0, 2, -3],
      [1, Number.POSITIVE_INFINITY, 0],
    ];
    const weights = runtime.tensor(rows.flat(), [rows.length, 3]);
    const again = f.multinomial(weights, 2, { generator, replacement: true });
    expect(await listed(again)).toEqual([3, 3, 3, 3, 3, 3, 3, 3, 1, 1, 3, 3]);
    const once = await listed(f.multinomial(weights, 3, { generator }));
    const drawn = rows.map((___, row) => once.slice(3 * row, 3 * row + 3));
    expect(drawn.filter((___, row) => row !== 2)).toEqual([
      ...[
        [3, 3, 3],
        [3, 3, 3],
        [3, 3, 3],
        [1, 3, 3],
        [1, 0, 3],
      ],
    ]);
    expect(drawn[2]?.toSorted()).toEqual([0, 2, 3]);
    expect(await listed(weights.gather(1, again.slice(1, { end: 1 })))).toEqual([
      ...[Number.NaN, Number.NaN, Number.NaN, Number.NaN, 2, Number.NaN],
    ]);
  },
);

test("whole numbers, orders and classes are drawn from the one stream", async () => {
  const runtime = cpuRuntime();
  const generator = new Generator(5);
  const dice = await listed(f.randint(runtime, [6000], { low: -1, high: 5, generator }));
  const seen = new Map<number, number>();
  for (const side of dice) seen.set(side, (seen.get(side) ?? 0) + 1);
  expect([...seen.keys()].sort((a, b) => a - b)).toEqual([-1, 0, 1, 2, 3, 4]);
  for (const count of seen.values()) expect(Math.abs(count - 1000)).toBeLessThan(150);
  expect(generator.offset).toBe(12_000);
  const bounds = { low: 2 ** 31 - 3, high: 2 ** 31 + 3, generator, dtype: "uint32" } as const;
  const around = await listed(f.randint(runtime, [200], bounds));
  expect(new Set(around.map((v) => v - 2 ** 31))).toEqual(new Set([-3, -2, -1, 0, 1, 2]));
  expect(() => f.randint(runtime, [1], { ...bounds, dtype: "int32" })).toThrow("no int32");
  const order = await listed(f.randperm(runtime, 50, { generator }));
  expect(order.toSorted((a, b) => a - b)).toEqual(order.map((_, i) => i));
  expect(order.filter((place, i) => place === i).length).toBeLessThan(8);

  const weights = runtime.tensor([0, 3, 1, 0, 5, 0, 0, 0], [2, 4]);
  const drawn = f.multinomial(weights, 4000, { replacement: true, generator });
  const rows = await listed(drawn);
  const ones = rows.slice(0, 4000).filter((c) => c === 1).length;
  expect(Math.abs(ones - 3000)).toBeLessThan(150);
  expect(new Set(rows.slice(0, 4000))).toEqual(new Set([1, 2]));
  expect(new Set(rows.slice(4000))).toEqual(new Set([0]));
  const first = f.multinomial(weights.slice(0, { end: 1 }).expand([2000, 4]), 2, { generator });
  const pairs = await listed(first);
  const firsts = pairs.filter((_, i) => i % 2 === 0);
  expect(Math.abs(firsts.filter((c) => c === 1).length - 1500)).toBeLessThan(110);
  expect(pairs.every((c, i) => i % 2 === 0 || (c !== pairs[i - 1] && (c === 1 || c === 2)))).toBe(
    true,
  );
});
