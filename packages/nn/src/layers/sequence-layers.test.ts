import { autocast } from "@halfstep/autocast";
import { cpuRuntime, scaledDotProductAttention, type Tensor } from "@halfstep/tensor";
import { expect, test } from "vitest";
import {
  Conv1d,
  Conv2d,
  ConvTranspose1d,
  ConvTranspose2d,
  Generator,
  GroupNorm,
  LayerNorm,
  type Module,
  MultiheadAttention,
  RMSNorm,
} from "../index.js";

const valuesOf = async (x: Tensor): Promise<number[]> => [...(await x.toArray())];

const drawn = (runtime: ReturnType<typeof cpuRuntime>, shape: readonly number[], seed = 1) => {
  const generator = new Generator(seed);
  const count = shape.reduce((a, b) => a * b, 1);
  return runtime.tensor(
    Float32Array.from({ length: count }, () => generator.normal()),
    shape,
  );
};

const parametersOf = (module: Module): string[] =>
  [...module.namedParameters()].map(([name, { shape }]) => `${name} ${shape}`);

test("convolutions have torch's sizes, channels last", () => {
  const runtime = cpuRuntime();
  const generator = new Generator(1);
  const grouped = new Conv2d(runtime, 4, 6, { kernelSize: 3, groups: 2, generator });
  expect(parametersOf(grouped)).toEqual(["weight 3,3,2,6", "bias 6"]);
  expect(grouped.forward(runtime.zeros([1, 5, 5, 4])).shape).toEqual([1, 3, 3, 6]);
  const line = new Conv1d(runtime, 3, 4, { kernelSize: 3, stride: 2, padding: 1, generator });
  expect(parametersOf(line)).toEqual(["weight 3,3,4", "bias 4"]);
  expect(line.forward(runtime.zeros([2, 7, 3])).shape).toEqual([2, 4, 4]);
  const options = { kernelSize: 2, stride: 2, bias: false, generator } as const;
  const up = new ConvTranspose2d(runtime, 4, 3, options);
  expect(parametersOf(up)).toEqual(["weight 2,2,3,4"]);
  expect(up.forward(runtime.zeros([1, 3, 5, 4])).shape).toEqual([1, 6, 10, 3]);
  const longer = new ConvTranspose1d(runtime, 4, 3, { ...options, outputPadding: 1 });
  expect(parametersOf(longer)).toEqual(["weight 2,3,4"]);
  expect(longer.forward(runtime.zeros([1, 3, 4])).shape).toEqual([1, 7, 3]);
});

test("norms start as the identity of what they normalise", async () => {
  const runtime = cpuRuntime();
  const x = drawn(runtime, [3, 2, 4]).mul(5).add(2);
  const rows = await valuesOf(new LayerNorm(runtime, 4).forward(x));
  for (let row = 0; row < 6; row++) {
    const values = rows.slice(row * 4, row * 4 + 4);
    expect(values.reduce((a, b) => a + b)).toBeCloseTo(0, 4);
    expect(values.reduce((a, b) => a + b * b, 0)).toBeCloseTo(4, 3);
  }
  const scaled = await valuesOf(new RMSNorm(runtime, [2, 4]).forward(x));
  expect(scaled.reduce((a, b) => a + b * b, 0)).toBeCloseTo(24, 3);
  expect(new GroupNorm(runtime, 2, 4).forward(x).shape).toEqual([3, 2, 4]);
  expect(parametersOf(new LayerNorm(runtime, [2, 4]))).toEqual(["weight 2,4", "bias 2,4"]);
  expect(parametersOf(new LayerNorm(runtime, 4, { bias: false }))).toEqual(["weight 4"]);
  expect(parametersOf(new RMSNorm(runtime, 4))).toEqual(["weight 4"]);
  expect(parametersOf(new GroupNorm(runtime, 2, 4, { affine: false }))).toEqual([]);
  expect(() => new GroupNorm(runtime, 3, 4)).toThrow("4 channels cannot be divided into 3 groups");
});

test("a half layer norm keeps half inputs, and autocast takes it to float32", () => {
  const runtime = cpuRuntime();
  const layer = new LayerNorm(runtime, 4).half();
  const x = runtime.zeros([2, 4], { dtype: "float16" });
  expect(layer.forward(x).dtype).toBe("float16");
  expect(autocast({ dtype: "float16" }, () => layer.forward(x)).dtype).toBe("float32");
});

test("heads attend side by side", async () => {
  const runtime = cpuRuntime();
  const layer = new MultiheadAttention(runtime, 6, 2, { generator: new Generator(2) });
  const x = drawn(runtime, [2, 5, 6]);
  const memory = drawn(runtime, [2, 4, 6], 2);
  const y = layer.forward(x, memory);
  const projected = [
    layer.queryProjection.forward(x),
    layer.keyProjection.forward(memory),
    layer.valueProjection.forward(memory),
  ];
  // Each head by itself, in columns of three.
  const heads = [0, 1].map((head) => {
    const [q, k, v] = projected.map((whole) => whole.narrow(2, head * 3, 3)) as [
      Tensor,
      Tensor,
      Tensor,
    ];
    return scaledDotProductAttention(q, k, v);
  }) as [Tensor, Tensor];
  const joined = heads[0].reshape([2, 5, 1, 3]).expand([2, 5, 2, 3]);
  const second = heads[1].reshape([2, 5, 1, 3]).expand([2, 5, 2, 3]);
  const first = runtime.tensor([1, 0], [2, 1]);
  const side = joined.mul(first).add(second.mul(first.neg().add(1)));
  const expected = await valuesOf(layer.outProjection.forward(side.reshape([2, 5, 6])));
  const actual = await valuesOf(y);
  expect(y.shape).toEqual([2, 5, 6]);
  expect(Math.max(...actual.map((v, i) => Math.abs(v - (expected[i] as number))))).toBeLessThan(
    1e-6,
  );
});

test("attention starts from torch's distributions", async () => {
  const runtime = cpuRuntime();
  const layer = new MultiheadAttention(runtime, 24, 2, { generator: new Generator(3) });
  const boundOf = async ({ weight }: { weight: Tensor }): Promise<readonly number[]> => {
    const values = await valuesOf(weight);
    return [Math.min(...values), Math.max(...values)];
  };
  const { queryProjection, keyProjection, valueProjection, outProjection } = layer;
  // torch 2.13, MultiheadAttention(24, 2): xavier_uniform_ of [72, 24], and Linear's default for the last projection.
  for (const [projection, bound] of [
    [queryProjection, 0.25],
    [keyProjection, 0.25],
    [valueProjection, 0.25],
    [outProjection, 1 / Math.sqrt(24)],
  ] as const) {
    const [least = 0, largest = 0] = await boundOf(projection);
    expect(Math.max(-least, largest)).toBeLessThanOrEqual(Math.fround(bound));
    expect(Math.min(-least, largest)).toBeGreaterThan(0.97 * bound);
    expect(await valuesOf(projection.bias as Tensor)).toEqual(Array(24).fill(0));
  }
});

test("attention to itself, causal, and with dropout in training only", async () => {
  const runtime = cpuRuntime();
  const generator = new Generator(2);
  const layer = new MultiheadAttention(runtime, 4, 2, { dropout: 0.5, generator }).eval();
  const x = drawn(runtime, [1, 5, 4]);
  const causal = { isCausal: true } as const;
  const whole = await valuesOf(layer.forward(x, undefined, undefined, causal));
  const start = await valuesOf(layer.forward(x.narrow(1, 0, 2), undefined, undefined, causal));
  expect(start.map((v, i) => Math.abs(v - (whole[i] as number)) < 1e-6)).toEqual(
    Array(8).fill(true),
  );
  // In a window of no neighbours a token attends to itself alone.
  const own = await valuesOf(layer.forward(x, undefined, undefined, { window: 0 }));
  const alone = await valuesOf(layer.forward(x.narrow(1, 3, 1)));
  expect(alone.map((v, i) => Math.abs(v - (own[12 + i] as number)) < 1e-6)).toEqual(
    Array(4).fill(true),
  );
  layer.train();
  expect(await valuesOf(layer.forward(x))).not.toEqual(await valuesOf(layer.forward(x)));
  expect(() => layer.forward(runtime.zeros([5, 4]))).toThrow(
    "MultiheadAttention needs sequences [batch, length, 4], not [5,4]",
  );
  expect(() => new MultiheadAttention(runtime, 5, 2, { generator })).toThrow(
    "a size of 5 is no multiple of 2 heads",
  );
});
