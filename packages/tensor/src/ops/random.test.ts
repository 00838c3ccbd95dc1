import { requestTestDevice } from "@halfstep/device/testing";
import { expect, test } from "vitest";
import { cpuRuntime, Generator, gpuRuntime, type Runtime, type Tensor } from "../index.js";
import { bernoulli, dropout, rand, randn } from "./index.js";

const valuesOf = async (x: Tensor): Promise<number[]> => [...(await x.toArray())];

const runtimes: readonly [string, () => Promise<Runtime>][] = [
  ["CPU", async () => cpuRuntime()],
  ["GPU", async () => gpuRuntime(await requestTestDevice())],
];

test("the CPU and the GPU draw the same masks and uniform numbers, bit for bit", async () => {
  const drawn = runtimes.map(async ([, open]) => {
    const runtime = await open();
    const generator = new Generator(2 ** 45 + 1);
    generator.offset = 4 * (2 ** 32 - 2);
    const x = runtime.full([3, 7], 2);
    const all = [
      dropout(x, { p: 0.3, generator }),
      rand(runtime, [9], { generator, low: -1, high: 1 }),
      bernoulli(runtime, [11], { generator, p: 0.5, dtype: "float16" }),
    ];
    return [...(await Promise.all(all.map(valuesOf))), generator.offset];
  });
  const [cpu, gpu] = await Promise.all(drawn);
  expect(gpu).toEqual(cpu);
});

test("a device draws what the host would draw next, and the host goes on behind it", async () => {
  const [host, device] = [new Generator(7), new Generator(7)];
  const runtime = cpuRuntime();
  const expected = Array.from({ length: 8 }, () => host.uniform());
  expect(await valuesOf(rand(runtime, [6], { generator: device }))).toEqual(expected.slice(0, 6));
  expect(device.uniform()).toBe(host.uniform());
});

test.each(runtimes)(
  "backward draws the mask of its forward again, though others were drawn since: %s",
  async (_, open) => {
    const runtime = await open();
    const generator = new Generator(1);
    const weight = runtime.variable(new Float32Array(50).fill(1), [50], { requiresGrad: true });
    const { y, z } = await runtime.step(() => {
      const [y, z] = [dropout(weight, { generator }), dropout(weight, { generator })];
      y.sum().add(z.sum().mul(10)).backward();
      return { y, z };
    });
    const [first, second] = [await valuesOf(y), await valuesOf(z)];
    expect(first).not.toEqual(second);
    expect(new Set(first)).toEqual(new Set([0, 2]));
    const gradient = await valuesOf(weight.grad as Tensor);
    expect(gradient).toEqual(first.map((value, i) => value + 10 * (second[i] as number)));
  },
);

test("later steps draw other numbers with the plan of the first", async () => {
  const runtime = cpuRuntime();
  const generator = new Generator(1);
  const x = runtime.full([64], 1);
  const step = () => runtime.step(() => dropout(x, { generator }));
  const first = await step();
  const plan = runtime.lastPlan;
  const second = await step();
  expect(runtime.lastPlan).toBe(plan);
  expect(await valuesOf(second)).not.toEqual(await valuesOf(first));
});

test("a step that throws draws nothing", async () => {
  const runtime = cpuRuntime();
  const [generator, untouched] = [new Generator(5), new Generator(5)];
  const fails = runtime.step(() => {
    randn(runtime, [10], { generator });
    throw new Error("no");
  });
  await expect(fails).rejects.toThrow("no");
  expect(await valuesOf(randn(runtime, [4], { generator }))).toEqual(
    await valuesOf(randn(runtime, [4], { generator: untouched })),
  );
});

test("probabilities and dtypes that cannot be are refused", () => {
  const runtime = cpuRuntime();
  const generator = new Generator(1);
  expect(() => dropout(runtime.zeros([1]), { p: 1.1, generator })).toThrow(
    "dropout: p is a probability from 0 to 1, not 1.1",
  );
  expect(() => bernoulli(runtime, [1], { p: Number.NaN, generator })).toThrow(RangeError);
  expect(() => rand(runtime, [1], { generator, dtype: "uint32" })).toThrow(
    "a random tensor needs a floating tensor, not uint32",
  );
  expect(generator.offset).toBe(0);
});
