import { expect, test } from "vitest";
import { decimalScale, linearScale, powerScale, spread } from "./scale.js";

test("ticks are round numbers within the domain", () => {
  expect(linearScale([0, 45.9], [0, 100]).ticks).toEqual([0, 10, 20, 30, 40]);
  expect(linearScale([0, 0.013], [0, 100]).ticks).toHaveLength(3);
  expect(powerScale([1, 2 ** 16], [0, 100], 4).ticks).toEqual([1, 16, 256, 4096, 65536]);
});

test("a tick of a decimal scale is where its label says", () => {
  const ticksOf = (low: number, high: number) => decimalScale([low, high], [0, 100]).ticks;
  expect(ticksOf(0.5, 4)).toEqual([0.5, 1, 2]);
  expect(ticksOf(2 ** -8, 1)).toEqual([0.01, 0.03, 0.1, 0.3, 1]);
  expect(ticksOf(2 ** -13, 1)).toEqual([0.001, 0.01, 0.1, 1]);
  expect(ticksOf(2 ** -40, 2 ** 10)).toEqual([1e-12, 1e-9, 1e-6, 1e-3, 1, 1000]);
  expect(decimalScale([1, 100], [0, 80])(10)).toBe(40);
});

test("positions are proportional, on a logarithmic scale to the exponent", () => {
  expect(linearScale([0, 10], [100, 0])(2.5)).toBe(75);
  expect(powerScale([1, 256], [0, 80])(4)).toBe(20);
  expect(linearScale([3, 3], [0, 10])(3)).toBe(0);
});

test("labels that would cover each other move apart within their interval", () => {
  expect(spread([10, 12, 40], 15, [0, 100])).toEqual([10, 25, 40]);
  expect(spread([98, 97], 15, [0, 100])).toEqual([100, 85]);
});
