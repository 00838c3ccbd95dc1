import { expect, test } from "vitest";
import { cpuRuntime, dropout, Generator } from "../index.js";

test("a seed and an offset are the whole state", () => {
  const a = new Generator(2 ** 40 + 3);
  const drawn = Array.from({ length: 20 }, () => a.uint32());
  const b = new Generator(2 ** 40 + 3);
  b.offset = 7;
  expect(Array.from({ length: 13 }, () => b.uint32())).toEqual(drawn.slice(7));
  expect(new Set(drawn).size).toBe(20);
  const other = new Generator(3);
  expect(Array.from({ length: 20 }, () => other.uint32())).not.toEqual(drawn);
});

test("words are those of their offset, from wherever it was moved there", () => {
  const words = (offset: number): number => Object.assign(new Generator(9), { offset }).uint32();
  const generator = new Generator(9);
  const offsets = [0, 1, 2, 7, 6, 5, 4, 3, 2 ** 34 + 3, 3, 2 ** 34 + 2, 2 ** 34 + 4];
  const drawn = offsets.map((offset) => {
    generator.offset = offset;
    return generator.uint32();
  });
  expect(drawn).toEqual(offsets.map(words));
});

test("parts of a batch draw the numbers of their samples, and move on by the whole batch", async () => {
  const runtime = cpuRuntime();
  const [samples, elements] = [5, 8];
  const drawn = async (first: number, count: number) => {
    const generator = new Generator(3);
    generator.offset = 6;
    if (count < samples) generator.part = { first, count, total: samples };
    const ones = runtime.tensor(new Float32Array(count * elements).fill(1), [count, elements]);
    const masked = await dropout(ones, { p: 0.5, generator }).toArray();
    return { masked: [...masked], offset: generator.offset };
  };
  const whole = await drawn(0, samples);
  const parts = [await drawn(0, 2), await drawn(2, 3)];
  expect(parts.flatMap(({ masked }) => masked)).toEqual(whole.masked);
  for (const { offset } of parts) expect(offset).toBe(whole.offset);
});

test("the first numbers of a seed never change", () => {
  const generator = new Generator(42);
  expect([generator.uint32(), generator.uniform(), generator.normal()]).toMatchInlineSnapshot(`
    [
      4024013095,
      0.14235037565231323,
      0.07087448582990899,
    ]
  `);
});

test("uniform and normal numbers have the moments of their distributions", () => {
  const generator = new Generator(1);
  const count = 40_000;
  const moments = (draw: () => number): { mean: number; variance: number; kurtosis: number } => {
    const x = Array.from({ length: count }, draw);
    const mean = x.reduce((a, b) => a + b) / count;
    const central = (power: number): number =>
      x.reduce((sum, value) => sum + (value - mean) ** power, 0) / count;
    return { mean, variance: central(2), kurtosis: central(4) / central(2) ** 2 };
  };
  const uniform = moments(() => generator.uniform());
  const normal = moments(() => generator.normal());
  // Five standard errors each: √(1/12n), √(1/180n), √(1/n), √(2/n), √(24/n).
  const within = (value: number, expected: number, deviation: number): boolean =>
    Math.abs(value - expected) < 5 * deviation;
  const root = Math.sqrt(count);
  expect([
    within(uniform.mean, 1 / 2, Math.sqrt(1 / 12) / root),
    within(uniform.variance, 1 / 12, Math.sqrt(1 / 180) / root),
    within(normal.mean, 0, 1 / root),
    within(normal.variance, 1, Math.SQRT2 / root),
    within(normal.kurtosis, 3, Math.sqrt(24) / root),
  ]).toEqual([true, true, true, true, true]);
});

test.each([-1, 0.5, 2 ** 53, Number.NaN])("%s is no seed", (seed) => {
  expect(() => new Generator(seed)).toThrow(RangeError);
});

test("a tensor takes whole blocks, and a step that throws gives them back", async () => {
  const runtime = cpuRuntime();
  const generator = new Generator(1);
  generator.offset = 5;
  expect(generator.take(runtime, 9)).toEqual({ seed: 1, block: 2, stream: 0x6e6e });
  expect(generator.offset).toBe(20);
  const fails = runtime.step(() => {
    generator.take(runtime, 100);
    generator.take(runtime, 1);
    throw new Error("no");
  });
  await expect(fails).rejects.toThrow("no");
  expect(generator.offset).toBe(20);
});
