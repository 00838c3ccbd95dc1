import { float8e4m3fn, float16 } from "@halfstep/formats";
import { expect, test } from "vitest";
import { barsOf, fateOf, gradientSets, sharesOf } from "./gradients.js";
import { stallOf, sumsOf } from "./sums.js";

test("sums of 0.01 stop where half a unit exceeds the term, but for stochastic rounding", () => {
  const sums = Object.fromEntries(sumsOf(0.01, 1).map((sum) => [sum.name, sum]));
  const last = (name: string): number => sums[name]?.values.at(-1) as number;
  expect(last("float16")).toBe(32);
  expect(last("bfloat16")).toBe(4);
  expect(last("float32")).toBeCloseTo(40.96, 1);
  expect(Math.abs(last("stochastic") - 40.96)).toBeLessThan(4);
  expect(Object.values(sums).map((sum) => stallOf(sum) !== undefined)).toEqual([
    false,
    false,
    true,
    true,
  ]);
  expect(sumsOf(0.01, 2)[1]?.values).not.toEqual(sums.stochastic?.values);
});

test("powers of two have the fate of their numbers", () => {
  const fates = (exponents: readonly number[]) => exponents.map((each) => fateOf(float16, each));
  expect(fates([-26, -25, -15, -14, 15, 16])).toEqual([
    "zero",
    "subnormal",
    "subnormal",
    "normal",
    "normal",
    "infinite",
  ]);
  expect(fateOf(float8e4m3fn, 9)).toBe("infinite");
});

test("a loss scale saves gradients of the recorded step", () => {
  for (const gradients of gradientSets) {
    const zero = (scale: number) => sharesOf(barsOf(gradients, float16, scale)).zero;
    expect(zero(16), gradients.id).toBeLessThan(Math.max(zero(0), 1e-12));
    const total = Object.values(sharesOf(barsOf(gradients, float16, 7))).reduce((a, b) => a + b);
    expect(total, gradients.id).toBeCloseTo(1, 9);
  }
});
