import { cpuRuntime, Generator, ShapeError, type Tensor } from "@halfstep/tensor";
import { expect, test } from "vitest";
import {
  AdaptiveAvgPool2d,
  AvgPool1d,
  Dropout,
  ELU,
  Embedding,
  GELU,
  Hardtanh,
  InstanceNorm2d,
  LeakyReLU,
  MaxPool1d,
  PixelShuffle,
  PixelUnshuffle,
  PReLU,
  Sequential,
  SiLU,
  Softplus,
  Upsample,
  type UpsampleLayerOptions,
} from "../index.js";

const valuesOf = async (x: Tensor): Promise<number[]> => [...(await x.toArray())];
const rounded = async (x: Tensor): Promise<number[]> =>
  (await valuesOf(x)).map((value) => Math.round(value * 1e4) / 1e4 + 0);

test("activations compute what their names say", async () => {
  const runtime = cpuRuntime();
  const x = runtime.tensor([-2, 0, 3]);
  // By torch 2.13.
  expect(await rounded(new GELU().forward(x))).toEqual([-0.0455, 0, 2.996]);
  expect(await rounded(new GELU({ approximate: "tanh" }).forward(x))).toEqual([-0.0454, 0, 2.9964]);
  expect(await rounded(new SiLU().forward(x))).toEqual([-0.2384, 0, 2.8577]);
  expect(await rounded(new ELU(0.5).forward(x))).toEqual([-0.4323, 0, 3]);
  expect(await rounded(new LeakyReLU(0.1).forward(x))).toEqual([-0.2, 0, 3]);
  expect(await rounded(new Hardtanh().forward(x))).toEqual([-1, 0, 1]);
  expect(await rounded(new Softplus({ beta: 2 }).forward(x))).toEqual([0.0091, 0.3466, 3.0012]);
});

test("PReLU has one weight, or one a channel", async () => {
  const runtime = cpuRuntime();
  expect(await rounded(new PReLU(runtime).forward(runtime.tensor([-2, 3])))).toEqual([-0.5, 3]);
  const layer = new PReLU(runtime, 2, 0.5);
  const y = layer.forward(runtime.tensor([-2, 3, 4, -6], [2, 2]));
  expect(await rounded(y)).toEqual([-1, 3, 4, -3]);
  y.sum().backward();
  expect(await valuesOf(layer.weight.grad as Tensor)).toEqual([-2, -6]);
});

test("dropout drops in training only, and its masks follow the generator", async () => {
  const runtime = cpuRuntime();
  const generator = new Generator(1);
  const model = new Sequential(new Dropout({ p: 0.25, generator }));
  const x = runtime.full([400], 3);
  const first = await valuesOf(model.forward(x));
  expect(new Set(first)).toEqual(new Set([0, 4]));
  const kept = first.filter((value) => value === 4).length;
  expect(Math.abs(kept - 300)).toBeLessThan(40);
  expect(await valuesOf(model.forward(x))).not.toEqual(first);
  generator.offset = 0;
  expect(await valuesOf(model.forward(x))).toEqual(first);
  const { offset } = generator;
  expect(model.eval().forward(x)).toBe(x);
  expect(generator.offset).toBe(offset);
  expect(() => new Dropout({ p: 2, generator })).toThrow("p is 2; pass a probability from 0 to 1");
});

test("an embedding has rows from N(0, 1), zeros for the padding word, and gradients where words were", async () => {
  const runtime = cpuRuntime();
  const layer = new Embedding(runtime, 100, 32, { paddingIndex: 3, generator: new Generator(1) });
  const weight = await valuesOf(layer.weight);
  expect(weight.slice(96, 128)).toEqual(Array(32).fill(0));
  const variance = weight.reduce((sum, w) => sum + w * w, 0) / (99 * 32);
  expect(Math.abs(variance - 1)).toBeLessThan(0.1);
  const words = runtime.tensor(Uint32Array.of(7, 3, 7, 0), [2, 2]);
  const rows = layer.forward(words);
  expect(rows.shape).toEqual([2, 2, 32]);
  expect((await valuesOf(rows)).slice(0, 32)).toEqual(weight.slice(7 * 32, 8 * 32));
  rows.sum().backward();
  const gradient = await valuesOf(layer.weight.grad as Tensor);
  const perWord = Array.from({ length: 100 }, (_, word) => gradient[word * 32]);
  expect(perWord).toEqual(Array.from({ length: 100 }, (_, w) => (w === 7 ? 2 : w === 0 ? 1 : 0)));
});

test("a padding index is a row of the table, from the start or from the end", async () => {
  const runtime = cpuRuntime();
  const generator = new Generator(1);
  const make = (paddingIndex: number) => new Embedding(runtime, 6, 2, { paddingIndex, generator });
  const last = make(-1);
  // torch 2.13: Embedding(6, 2, padding_idx=-1).padding_idx
  expect(last.paddingIndex).toBe(5);
  expect((await valuesOf(last.weight)).slice(10)).toEqual([0, 0]);
  last
    .forward(runtime.tensor(Uint32Array.of(5, 4)))
    .sum()
    .backward();
  const gradient = await valuesOf(last.weight.grad as Tensor);
  expect(gradient.slice(8)).toEqual([1, 1, 0, 0]);
  for (const wrong of [1.5, 6, -7, Number.NaN, "1", null])
    expect(() => make(wrong as number)).toThrow(
      /^new Embedding\(.*\): paddingIndex is .*; pass a whole number from -6 to 5$/,
    );
});

test("instance norm refuses images of one pixel", () => {
  const runtime = cpuRuntime();
  const layer = new InstanceNorm2d(runtime, 3);
  const text = "InstanceNorm2d got one pixel a channel, [2,1,1,3], which has no variance";
  // torch 2.13 refuses it in evaluation mode, too, where it has no running statistics.
  expect(() => layer.forward(runtime.zeros([2, 1, 1, 3]))).toThrow(text);
  expect(() => layer.eval().forward(runtime.zeros([2, 1, 1, 3]))).toThrow(text);
  expect(layer.forward(runtime.zeros([2, 1, 2, 3])).shape).toEqual([2, 1, 2, 3]);
});

test("upsampling", async () => {
  const image = cpuRuntime().tensor([1, 2, 3, 4], [1, 2, 2, 1]);
  expect(await valuesOf(new Upsample({ scale: 2 }).forward(image))).toEqual([
    1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4,
  ]);
  const corners = new Upsample({ size: [2, 3], mode: "bilinear", alignCorners: true });
  expect(await valuesOf(corners.forward(image))).toEqual([1, 1.5, 2, 3, 3.5, 4]);
});

// torch.nn.functional.interpolate of torch 2.13.0, with channels first.
test.each<[UpsampleLayerOptions, readonly number[], readonly number[]]>([
  [{ size: [5], mode: "nearest" }, [1, 3, 1], [0, 0, 1, 1, 2]],
  [{ size: [5], mode: "nearest-exact" }, [1, 3, 1], [0, 0, 1, 2, 2]],
  [{ size: [5], mode: "linear" }, [1, 3, 1], [0, 0.4, 1, 1.6, 2]],
  [{ size: [5], mode: "linear", alignCorners: true }, [1, 3, 1], [0, 0.5, 1, 1.5, 2]],
  [{ size: [1, 3], mode: "nearest-exact" }, [1, 1, 2, 1], [0, 1, 1]],
  [{ size: [1, 4], mode: "bicubic" }, [1, 1, 2, 1], [-0.10547, 0.22656, 0.77344, 1.10547]],
  [{ size: [2, 1, 1], mode: "trilinear" }, [1, 2, 2, 2, 1], [1.5, 5.5]],
  [
    { scale: 2, mode: "nearest" },
    [1, 1, 1, 2, 1],
    [0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1],
  ],
])("upsampling by %o of [%s]", async (options, shape, expected) => {
  const count = shape.reduce((a, b) => a * b, 1);
  const x = cpuRuntime().tensor(
    Array.from({ length: count }, (_, i) => i),
    shape,
  );
  const found = await valuesOf(new Upsample(options).forward(x));
  expect(found.map((v) => Math.round(v * 1e5) / 1e5)).toEqual(expected);
});

test("upsampling tells what does not fit", () => {
  const runtime = cpuRuntime();
  expect(() => new Upsample({ mode: "bilinear" })).toThrow("neither a size nor a scale");
  expect(() => new Upsample({ size: [2, 2], scale: 2 })).toThrow("a size and a scale");
  expect(() => new Upsample({ scale: 2, alignCorners: true })).toThrow('mode "nearest" never does');
  expect(() => new Upsample({ scale: 2 }).forward(runtime.zeros([2, 2]))).toThrow(ShapeError);
  expect(() =>
    new Upsample({ scale: 2, mode: "linear" }).forward(runtime.zeros([1, 2, 2, 1])),
  ).toThrow("upsampleLinear1d needs an input [batch, length, channels]");
});

test("pools, pixels and norms of channels are torch's, channels last", async () => {
  const runtime = cpuRuntime();
  // sin 0 to sin 23 with the channels first, by torch 1.13.
  const sines = Float32Array.from({ length: 24 }, (_, i) => Math.sin((i % 2) * 12 + (i >> 1)));
  const images = runtime.tensor(sines, [1, 3, 4, 2]);
  expect(await rounded(new AdaptiveAvgPool2d([2, 3]).forward(images))).toEqual([
    ...[-0.2186, -0.3414, 0.1281, -0.0754, 0.357, 0.2599],
    ...[-0.0786, 0.1251, -0.3426, -0.2211, -0.2916, -0.364],
  ]);
  const plain = new InstanceNorm2d(runtime, 2);
  expect([...plain.parameters()]).toEqual([]);
  expect((await rounded(plain.forward(images))).slice(0, 8)).toEqual([
    ...[-0.0485, -0.8484, 1.1428, 0.5416, 1.2388, 1.3704, 0.1513, 0.8759],
  ]);
  const affine = new InstanceNorm2d(runtime, 2, { affine: true });
  expect([...affine.namedParameters()].map(([name]) => name)).toEqual(["weight", "bias"]);
  affine.weight?.assign(runtime.tensor([2, 0]));
  affine.bias?.assign(runtime.tensor([1, 3]));
  expect((await rounded(affine.forward(images))).slice(0, 4)).toEqual([0.903, 3, 3.2855, 3]);

  const line = runtime.tensor([1, -2, 3, 0, 5, -1, 2], [1, 7, 1]);
  const max = new MaxPool1d({ kernelSize: 3, stride: 2, padding: 1, ceilMode: true });
  expect(await rounded(max.forward(line))).toEqual([1, 3, 5, 2]);
  const outside = { padding: 1, ceilMode: true, countIncludePad: false } as const;
  const mean = new AvgPool1d({ kernelSize: 4, stride: 3, ...outside });
  expect(await rounded(mean.forward(line))).toEqual([0.6667, 1.75, 0.5]);

  const deep = runtime.tensor([0, 1, 2, 3, 4, 5, 6, 7], [1, 1, 1, 8]);
  const wide = new PixelShuffle(2).forward(deep);
  expect(await rounded(wide)).toEqual([0, 4, 1, 5, 2, 6, 3, 7]);
  expect(await rounded(new PixelUnshuffle(2).forward(wide))).toEqual(await rounded(deep));
});
