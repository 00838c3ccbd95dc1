import { requestTestDevice } from "@halfstep/device/testing";
import {
  cpuRuntime,
  gpuRuntime,
  mseLoss,
  noGrad,
  type Runtime,
  type Tensor,
  type Variable,
} from "@halfstep/tensor";
import { expect, test } from "vitest";
import {
  AvgPool2d,
  BatchNorm2d,
  Conv2d,
  CrossEntropyLoss,
  Flatten,
  Generator,
  Linear,
  MaxPool2d,
  MSELoss,
  ReLU,
  Sequential,
  Sigmoid,
  Tanh,
} from "../index.js";

const runtimes: readonly [string, () => Promise<Runtime>][] = [
  ["CPU", async () => cpuRuntime()],
  ["GPU", async () => gpuRuntime(await requestTestDevice())],
];

const valuesOf = async (x: Tensor): Promise<number[]> => [...(await x.toArray())];

const drawn = (count: number, seed: number): number[] => {
  const generator = new Generator(seed);
  return Array.from({ length: count }, () => Math.fround(generator.normal()));
};

function closeTo(actual: readonly number[], expected: readonly number[]): void {
  expect(actual).toHaveLength(expected.length);
  const worst = Math.max(...actual.map((x, i) => Math.abs(x - (expected[i] as number))));
  expect(worst).toBeLessThan(1e-5);
}

/** torch's formulas in float64: of each channel of rows [rows, channels]. */
function momentsOf(rows: readonly number[], channels: number, c: number) {
  const x = rows.filter((_, i) => i % channels === c);
  const mean = x.reduce((a, b) => a + b) / x.length;
  const squares = x.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return { mean, biased: squares / x.length, unbiased: squares / (x.length - 1) };
}

test.each(runtimes)(
  "batch norm moves its running statistics as torch does: %s",
  async (_, open) => {
    const runtime = await open();
    const layer = new BatchNorm2d(runtime, 3, { momentum: 0.25, eps: 1e-3 });
    layer.loadStateDict({
      ...(await layer.stateDict()),
      weight: { shape: [3], dtype: "float32", data: new Float32Array([1, -2, 0.5]) },
      bias: { shape: [3], dtype: "float32", data: new Float32Array([0, 0.1, -1]) },
    });
    const [weight, bias] = [
      await valuesOf(layer.weight as Variable),
      await valuesOf(layer.bias as Variable),
    ];
    const running = { mean: [0, 0, 0], variance: [1, 1, 1] };
    const normalised = (
      rows: readonly number[],
      statistics: (c: number) => { mean: number; variance: number },
    ): number[] =>
      rows.map((x, i) => {
        const c = i % 3;
        const { mean, variance } = statistics(c);
        return (
          ((x - mean) / Math.sqrt(variance + 1e-3)) * (weight[c] as number) + (bias[c] as number)
        );
      });

    for (const seed of [1, 2, 3]) {
      const rows = drawn(2 * 2 * 2 * 3, seed).map((x, i) => x * 2 + (i % 3));
      const output = await runtime.step(() => layer.forward(runtime.tensor(rows, [2, 2, 2, 3])));
      const moments = (c: number) => momentsOf(rows, 3, c);
      closeTo(
        await valuesOf(output),
        normalised(rows, (c) => ({ mean: moments(c).mean, variance: moments(c).biased })),
      );
      for (let c = 0; c < 3; c++) {
        running.mean[c] = 0.75 * (running.mean[c] as number) + 0.25 * moments(c).mean;
        running.variance[c] = 0.75 * (running.variance[c] as number) + 0.25 * moments(c).unbiased;
      }
      closeTo(await valuesOf(layer.runningMean), running.mean);
      closeTo(await valuesOf(layer.runningVar), running.variance);
    }

    layer.eval();
    const rows = drawn(12, 4);
    const inEvaluation = await runtime.step(() =>
      layer.forward(runtime.tensor(rows, [1, 2, 2, 3])),
    );
    closeTo(
      await valuesOf(inEvaluation),
      normalised(rows, (c) => ({
        mean: running.mean[c] as number,
        variance: running.variance[c] as number,
      })),
    );
    closeTo(await valuesOf(layer.runningMean), running.mean);
    closeTo(await valuesOf(layer.runningVar), running.variance);
  },
);

test("a batch that is not finite leaves the running statistics alone", async () => {
  const runtime = cpuRuntime();
  const layer = new BatchNorm2d(runtime, 2);
  await runtime.step(() => {
    layer.forward(runtime.tensor([1, Number.POSITIVE_INFINITY, 3, 4], [2, 1, 1, 2]));
    return 0;
  });
  closeTo(await valuesOf(layer.runningMean), [0.2, 0]);
  closeTo(await valuesOf(layer.runningVar), [0.9 + 0.1 * 2, 1]);
});

test.each(runtimes)("layers compute what their names say: %s", async (_, open) => {
  const runtime = await open();
  const generator = new Generator(1);
  const pixels = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
  const image = runtime.tensor(pixels, [1, 4, 4, 1]);
  closeTo(await valuesOf(new MaxPool2d({ kernelSize: 2 }).forward(image)), [6, 8, 14, 16]);
  closeTo(
    await valuesOf(new MaxPool2d({ kernelSize: 3, ceilMode: true }).forward(image)),
    [11, 12, 15, 16],
  );
  closeTo(
    await valuesOf(
      new AvgPool2d({ kernelSize: 3, padding: 1, countIncludePad: false }).forward(image),
    ),
    [3.5, 5.5, 11.5, 13.5],
  );
  closeTo(
    await valuesOf(new AvgPool2d({ kernelSize: [2, 4], stride: [1, 4] }).forward(image)),
    [4.5, 8.5, 12.5],
  );
  expect(new Flatten().forward(runtime.zeros([2, 3, 4])).shape).toEqual([2, 12]);
  expect(new Flatten().forward(runtime.zeros([0, 3, 4])).shape).toEqual([0, 12]);
  expect(new Flatten().forward(runtime.zeros([2, 0, 4])).shape).toEqual([2, 0]);
  // Two channels of 1 × 3 pixels, as torch has them in a vector.
  const twoChannels = runtime.tensor([1, 4, 2, 5, 3, 6], [1, 1, 3, 2]);
  const torchs = new Flatten({ channelsFirst: true });
  expect([...(await torchs.forward(twoChannels).toArray())]).toEqual([1, 2, 3, 4, 5, 6]);
  const x = runtime.zeros([2, 3, 4, 5]);
  expect(torchs.forward(x).shape).toEqual([2, 60]);
  expect(new Flatten({ startAxis: 2 }).forward(x).shape).toEqual([2, 3, 20]);
  expect(new Flatten({ startAxis: 0, endAxis: 1 }).forward(x).shape).toEqual([6, 4, 5]);
  expect(new Flatten({ startAxis: -3, endAxis: -2 }).forward(x).shape).toEqual([2, 12, 5]);
  expect(() => new Flatten({ startAxis: 4 }).forward(x)).toThrow("[2,3,4,5] has no such axes");
  expect(() => new Flatten({ startAxis: 2, endAxis: 1 }).forward(x)).toThrow("no such axes");
  const signed = runtime.tensor([-1, 0, 2]);
  closeTo(await valuesOf(new ReLU().forward(signed)), [0, 0, 2]);
  closeTo(await valuesOf(new Tanh().forward(signed)), [-1, 0, 2].map(Math.tanh));
  closeTo(
    await valuesOf(new Sigmoid().forward(signed)),
    [-1, 0, 2].map((x) => 1 / (1 + Math.exp(-x))),
  );

  const linear = new Linear(runtime, 2, 2, { generator });
  const weight = await valuesOf(linear.weight);
  const [w00, w01, w10, w11] = weight as [number, number, number, number];
  const [b0, b1] = (await valuesOf(linear.bias as Tensor)) as [number, number];
  closeTo(await valuesOf(linear.forward(runtime.tensor([3, -5], [1, 2]))), [
    3 * w00 - 5 * w01 + b0,
    3 * w10 - 5 * w11 + b1,
  ]);
  const vector = linear.forward(runtime.tensor([3, -5]));
  expect(vector.shape).toEqual([2]);
  closeTo(await valuesOf(vector), [3 * w00 - 5 * w01 + b0, 3 * w10 - 5 * w11 + b1]);
  const conv = new Conv2d(runtime, 1, 2, { kernelSize: [1, 2], stride: [4, 2], generator });
  const [k00, k01, k10, k11] = (await valuesOf(conv.weight)) as [number, number, number, number];
  const [c0, c1] = (await valuesOf(conv.bias as Tensor)) as [number, number];
  closeTo(await valuesOf(conv.forward(image)), [
    1 * k00 + 2 * k10 + c0,
    1 * k01 + 2 * k11 + c1,
    3 * k00 + 4 * k10 + c0,
    3 * k01 + 4 * k11 + c1,
  ]);
});

test("layers without bias have no such parameter, and are drawn from U(±1/√fanIn)", async () => {
  const runtime = cpuRuntime();
  const generator = new Generator(1);
  const conv = new Conv2d(runtime, 4, 50, { kernelSize: 3, bias: false, generator });
  const linear = new Linear(runtime, 36, 50, { bias: false, generator });
  expect([...conv.namedParameters(), ...linear.namedParameters()].map(([path]) => path)).toEqual([
    "weight",
    "weight",
  ]);
  for (const { weight } of [conv, linear]) {
    const values = await valuesOf(weight);
    expect(Math.max(...values)).toBeLessThanOrEqual(Math.fround(1 / 6));
    expect(Math.max(...values)).toBeGreaterThan(0.99 / 6);
    expect(Math.min(...values)).toBeLessThan(-0.99 / 6);
  }
});

test("losses reduce as asked, in float32", async () => {
  const runtime = cpuRuntime();
  const prediction = runtime.tensor([1, 2, 3, 4], [2, 2], { dtype: "float16" });
  const target = runtime.tensor([0, 2, 5, 4], [2, 2]);
  expect(await mseLoss(prediction, target).item()).toBe(1.25);
  expect(mseLoss(prediction, prediction).dtype).toBe("float32");
  expect(await new MSELoss({ reduction: "sum" }).forward(prediction, target).item()).toBe(5);
  expect(await valuesOf(mseLoss(prediction, target, { reduction: "none" }))).toEqual([1, 0, 4, 0]);
  expect(() => mseLoss(prediction, runtime.tensor([1, 2]))).toThrow("shape [2,2], the target [2]");
  const labels = runtime.tensor(Uint32Array.of(1, 0));
  const nll = [Math.log1p(Math.exp(-1)), Math.log1p(Math.exp(1))] as const;
  closeTo(
    [await new CrossEntropyLoss().forward(prediction, labels).item()],
    [(nll[0] + nll[1]) / 2],
  );
});

test.each(runtimes)("gradient descent by hand fits sixteen samples: %s", async (_, open) => {
  const runtime = await open();
  const generator = new Generator(2);
  const model = new Sequential(
    new Conv2d(runtime, 1, 4, { kernelSize: 3, padding: 1, bias: false, generator }),
    new BatchNorm2d(runtime, 4),
    new ReLU(),
    new MaxPool2d({ kernelSize: 2 }),
    new Flatten(),
    new Linear(runtime, 16, 4, { generator }),
  );
  const images = Float32Array.from(drawn(16 * 16, 7));
  const labels = Uint32Array.from({ length: 16 }, (_, i) => i % 4);
  const parameters = [...model.parameters()];
  const criterion = new CrossEntropyLoss();
  const losses: number[] = [];
  for (let step = 0; step < 60; step++) {
    using loss = await runtime.step(() => {
      const x = runtime.tensor(images, [16, 4, 4, 1]);
      const value = criterion.forward(model.forward(x), runtime.tensor(labels));
      value.backward();
      noGrad(() => {
        for (const parameter of parameters)
          if (parameter.grad) parameter.assign(parameter.sub(parameter.grad.mul(0.5)));
      });
      for (const parameter of parameters) parameter.zeroGrad();
      return value;
    });
    if (step % 59 === 0) losses.push(await loss.item());
  }
  expect(losses[0]).toBeGreaterThan(1);
  expect(losses[1]).toBeLessThan(0.05);
});
