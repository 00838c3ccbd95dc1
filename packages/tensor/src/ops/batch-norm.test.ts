import { DTypeError } from "@halfstep/autocast";
import { float16 } from "@halfstep/formats";
import { expect, test } from "vitest";
import { places, scattered } from "../../test/forward-check.js";
import { cpuRuntime, noGrad, type Runtime, ShapeError, type Tensor } from "../index.js";
import { batchNorm, batchNormInference } from "./index.js";

const channels = 3;
const eps = 1e-3;
const weight = [1, -0.5, 2];
const bias = [0, 1, -1];

const valuesOf = async (x: Tensor): Promise<number[]> => [...(await x.toArray())];

const parameters = (runtime: Runtime): readonly [Tensor, Tensor] => [
  runtime.tensor(weight),
  runtime.tensor(bias),
];

/** Mean and biased variance of each channel, in float64. */
function statisticsOf(x: readonly number[]): { mean: number[]; variance: number[] } {
  const moments = Array.from({ length: channels }, (_, c) => {
    const own = x.filter((_, i) => i % channels === c);
    const mean = own.reduce((a, b) => a + b, 0) / own.length;
    return { mean, variance: own.reduce((s, v) => s + (v - mean) ** 2, 0) / own.length };
  });
  return { mean: moments.map(({ mean }) => mean), variance: moments.map((m) => m.variance) };
}

const normalised = (
  x: readonly number[],
  { mean, variance }: { mean: readonly number[]; variance: readonly number[] },
): number[] =>
  x.map((value, i) => {
    const c = i % channels;
    const centred = value - (mean[c] as number);
    const scaled = centred / Math.sqrt((variance[c] as number) + eps);
    return scaled * (weight[c] as number) + (bias[c] as number);
  });

const distance = (a: readonly number[], b: readonly number[]): number =>
  a.length === b.length
    ? Math.max(...a.map((value, i) => Math.abs(value - (b[i] as number))))
    : Number.POSITIVE_INFINITY;

test.each(places)("batches are normalised in their dtype: %s, %s", async (_, dtype, open) => {
  const runtime = await open();
  const tolerance = { float32: 1e-5, float16: 2e-3, bfloat16: 2e-2 }[dtype];
  for (const shape of [
    [5, channels],
    [4, 6, 5, channels],
  ]) {
    const { values } = scattered(shape);
    const x = runtime.tensor(values, shape, { dtype });
    const { output, mean, variance } = batchNorm(x, ...parameters(runtime), { eps });
    expect([output.dtype, mean.dtype, variance.dtype]).toEqual([dtype, "float32", "float32"]);
    const stored = await valuesOf(x);
    const expected = statisticsOf(stored);
    expect(distance(await valuesOf(mean), expected.mean)).toBeLessThan(1e-5);
    expect(distance(await valuesOf(variance), expected.variance)).toBeLessThan(1e-5);
    expect(distance(await valuesOf(output), normalised(stored, expected))).toBeLessThan(tolerance);

    const running = {
      mean: runtime.variable([0.5, 0, -0.5], [channels]),
      variance: runtime.variable([1, 2, 0.5], [channels]),
    };
    const inference = batchNormInference(x, ...parameters(runtime), running, { eps });
    expect(inference.dtype).toBe(dtype);
    const given = { mean: [0.5, 0, -0.5], variance: [1, 2, 0.5] };
    expect(distance(await valuesOf(inference), normalised(stored, given))).toBeLessThan(tolerance);
  }
});

test.each(places)(
  "running statistics take the unbiased variance: %s, %s",
  async (_, dtype, open) => {
    const runtime = await open();
    const rows = 8;
    const x = runtime.tensor(scattered([rows, channels]).values, [rows, channels], { dtype });
    const running = {
      mean: runtime.variable([1, 1, 1], [channels]),
      variance: runtime.variable([2, 2, 2], [channels]),
    };
    noGrad(() => {
      batchNorm(x, ...parameters(runtime), { eps, running });
    });
    const { mean, variance } = statisticsOf(await valuesOf(x));
    expect(
      distance(
        await valuesOf(running.mean),
        mean.map((m) => 0.9 + 0.1 * m),
      ),
    ).toBeLessThan(1e-5);
    expect(
      distance(
        await valuesOf(running.variance),
        variance.map((v) => 1.8 + (0.1 * v * rows) / (rows - 1)),
      ),
    ).toBeLessThan(1e-5);
  },
);

test.each(places)(
  "a channel that is not finite keeps its statistics: %s, %s",
  async (_, dtype, open) => {
    const runtime = await open();
    const bad = [1, Number.NaN, 3, 3, 4, Number.POSITIVE_INFINITY];
    const running = {
      mean: runtime.variable([0, 0, 0], [channels]),
      variance: runtime.variable([1, 1, 1], [channels]),
    };
    noGrad(() => {
      const x = runtime.tensor(bad, [2, channels], { dtype });
      batchNorm(x, ...parameters(runtime), { running, momentum: 0.5 });
    });
    expect(await valuesOf(running.mean)).toEqual([1, 0, 0]);
    expect(await valuesOf(running.variance)).toEqual([1.5, 1, 1]);
  },
);

test("shapes and dtypes that do not fit are refused", () => {
  const runtime = cpuRuntime();
  const [gamma, beta] = parameters(runtime);
  const refused: readonly [() => unknown, string][] = [
    [
      () => batchNorm(runtime.zeros([2, 4]), gamma, beta),
      "batchNorm: the input [2,4] has 4 channels, a parameter or statistic has shape [3]",
    ],
    [
      () => batchNorm(runtime.zeros([3]), gamma, beta),
      "batchNorm needs an input [..., channels], not [3]",
    ],
  ];
  for (const [call, message] of refused) {
    expect(call).toThrow(ShapeError);
    expect(call).toThrow(message);
  }
  const half = runtime.variable(new Float32Array(3), [3], { dtype: "float16" });
  const inference = () =>
    batchNormInference(runtime.zeros([2, 3]), gamma, beta, { mean: half, variance: half });
  expect(inference).toThrow(DTypeError);
  expect(inference).toThrow(
    "batchNorm: running statistics are float32, not float16; keep them so under half()",
  );
});

test("parameters in 16 bits are read as float32, and get gradients", async () => {
  const runtime = cpuRuntime();
  const x = runtime.tensor([1, -2, 0.5, 3, 4, -1], [2, 3], { dtype: "float16" });
  const run = async (dtype: "float32" | "float16") => {
    const gamma = runtime.variable(Float32Array.of(1.5, -0.25, 2), [3], {
      dtype,
      requiresGrad: true,
    });
    const beta = runtime.variable(Float32Array.of(0.5, 1, 2), [3], { dtype, requiresGrad: true });
    const { output } = batchNorm(x, gamma, beta);
    output.square().sum().backward();
    return [output.dtype, await output.toArray(), gamma.grad?.dtype, await gamma.grad?.toArray()];
  };
  const [dtype, values, gradientDType, gradient] = await run("float16");
  const [, expected, , exact] = await run("float32");
  expect([dtype, values, gradientDType]).toEqual(["float16", expected, "float32"]);
  // The gradient of a float16 parameter is a float16 number.
  expect(gradient).toEqual(Float32Array.from(exact as Float32Array, (g) => float16.round(g)));
});
