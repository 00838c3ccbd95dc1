import { autocast } from "@halfstep/autocast";
import { requestTestDevice } from "@halfstep/device/testing";
import { bfloat16, float16 } from "@halfstep/formats";
import { describe, expect, test } from "vitest";
import { cpuRuntime, gpuRuntime, linear, type Tensor } from "../index.js";

const read = async (tensor: Tensor): Promise<number[]> => [...(await tensor.toArray())];

/** Numbers over the whole range of the 16-bit formats: ties, subnormals, overflow, signed zeros, and non-finite ones. */
const hard: readonly number[] = [
  ...Array.from({ length: 4096 }, (_, i) => Math.sin(i + 1) * 2 ** ((i % 44) - 26)),
  ...[
    1 + 2 ** -11,
    1 + 3 * 2 ** -11,
    2 ** -24,
    2 ** -25,
    3 * 2 ** -25,
    65504,
    65519.99,
    65520,
    1e38,
  ],
  ...[0, -0, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NaN],
];

describe("casts", () => {
  test.each([
    ["float16", float16],
    ["bfloat16", bfloat16],
  ] as const)("to %s round as the format does, exactly", async (dtype, format) => {
    const runtime = cpuRuntime();
    const single = Float32Array.from(hard);
    const values = await read(runtime.tensor(single).to(dtype));
    const wrong = values.filter((value, i) => !Object.is(value, format.round(single[i] as number)));
    expect(wrong).toEqual([]);
    expect(new Set(values).size).toBeGreaterThan(3000);
  });

  test("in float64 arithmetic nothing is rounded", async () => {
    const runtime = cpuRuntime({ arithmetic: "float64" });
    const x = runtime.tensor(Float64Array.from(hard));
    const round = await read(x.to("float16").to("bfloat16").to("float32"));
    expect(round).toEqual(hard);
    expect(await read(runtime.tensor([1]).mul(1 / 3))).toEqual([1 / 3]);
  });

  test("to the dtype that a tensor has are the tensor", () => {
    const runtime = cpuRuntime();
    const x = runtime.tensor([1]);
    expect(x.to("float32")).toBe(x);
  });

  test("of integers give their numbers", async () => {
    const runtime = cpuRuntime();
    const labels = runtime.tensor(Uint32Array.of(1, 2049));
    expect(await read(labels.to("float32").mul(2))).toEqual([2, 4098]);
    expect(await read(labels.to("float16"))).toEqual([1, 2048]);
  });

  test("to integers cut the fraction off, within the range of the integers", async () => {
    const values = [1.9, -1.9, 2 ** 24, 3e9, -3e9, 1e20, Infinity, -Infinity, Number.NaN, -0.5];
    const runtimes = [cpuRuntime(), gpuRuntime(await requestTestDevice())];
    for (const runtime of runtimes) {
      const x = runtime.tensor(values, [10], { requiresGrad: true });
      const [i, u] = [x.to("int32"), x.to("uint32")];
      const [low, high] = [-(2 ** 31), 2 ** 31 - 1];
      expect(await i.toArray()).toEqual(
        Int32Array.of(1, -1, 2 ** 24, high, low, high, high, low, 0, 0),
      );
      const top = 2 ** 32 - 1;
      expect(await u.toArray()).toEqual(Uint32Array.of(1, 0, 2 ** 24, 3e9, 0, top, top, 0, 0, 0));
      expect(i.requiresGrad).toBe(false);
      const back = await runtime.step(() => x.mul(0.5).to("int32").to("float16").add(0.25));
      expect([...(await back.toArray())].slice(0, 2)).toEqual([0.25, 0.25]);
    }
  });

  test("between unlike halves go through both formats", async () => {
    const runtime = cpuRuntime();
    const x = 1 + 2 ** -8 + 2 ** -12;
    const twice = await runtime.step(() => runtime.tensor([x]).to("float16").to("bfloat16").mul(1));
    const once = await runtime.step(() => runtime.tensor([x]).to("bfloat16").mul(1));
    expect(await twice.item()).toBe(bfloat16.round(float16.round(x)));
    expect(await twice.item()).not.toBe(await once.item());
  });
});

describe("the cache of casts", () => {
  test("casts one version of a weight once, and a new version anew", async () => {
    const runtime = cpuRuntime({ passes: [] });
    const w = runtime.variable([1, 2], [1, 2]);
    const run = (body: (x: Tensor) => readonly Tensor[]): Promise<readonly Tensor[]> =>
      runtime.step(() => {
        const x = runtime.tensor([1, 1], [1, 2], { dtype: "float16" });
        return autocast({ dtype: "float16" }, () => body(x));
      });
    const apply = (x: Tensor): Tensor => linear(x, w);
    await run((x) => [apply(x), apply(x), apply(x)]);
    expect(runtime.lastPlan?.statistics.recordedCasts).toBe(1);
    const results = await run((x) => {
      const before = apply(x);
      w.assign(runtime.tensor([10, 20], [1, 2]));
      return [before, apply(x)];
    });
    // The version that the step before has read, too, has a half copy by now.
    expect(runtime.lastPlan?.statistics.recordedCasts).toBe(1);
    expect(await Promise.all(results.map((t) => t.item()))).toEqual([3, 30]);
  });

  test("gives each shape of the same memory its own", async () => {
    const runtime = cpuRuntime();
    const x = runtime.tensor([1, 2, 3, 4, 5, 6], [2, 3]);
    const product = await runtime.step(() =>
      autocast({ dtype: "float16" }, () => x.matmul(x.reshape([3, 2]))),
    );
    expect([product.shape, await read(product)]).toEqual([
      [2, 2],
      [22, 28, 49, 64],
    ]);
  });

  test("forgets a cast that the caller has disposed", async () => {
    const runtime = cpuRuntime();
    const w = runtime.variable([3], [1, 1]);
    const y = await runtime.step(() => {
      w.to("float16").dispose();
      return autocast({ dtype: "float16" }, () => linear(runtime.tensor([2], [1, 1]), w));
    });
    expect(await y.item()).toBe(6);
  });

  test("keeps casts with and without gradients apart", async () => {
    const runtime = cpuRuntime();
    const w = runtime.variable([3], [1], { requiresGrad: true });
    await runtime.step(() => {
      w.detach().to("float16");
      w.to("float16").mul(2).sum().backward();
      return 0;
    });
    expect(await read(w.grad as Tensor)).toEqual([2]);
  });
});
