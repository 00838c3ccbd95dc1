import fc from "fast-check";
import { expect, test } from "vitest";
import {
  geometricMean,
  logLogSlope,
  median,
  pairedRatio,
  quantile,
  spreadOf,
} from "./statistics.js";

const samples = fc.array(fc.double({ min: 1e-3, max: 1e3, noNaN: true }), { minLength: 1 });

test("quantiles interpolate, as numpy's do", () => {
  expect(median([3, 1, 2])).toBe(2);
  expect(median([4, 1, 2, 3])).toBe(2.5);
  expect(quantile([10, 20, 30, 40, 50], 0.25)).toBe(20);
  expect(quantile([10, 20], 0.9)).toBeCloseTo(19, 12);
  expect(() => median([])).toThrow(RangeError);
});

test("quantiles grow with their share and stay among the samples", () => {
  fc.assert(
    fc.property(samples, (values) => {
      const { least, quartiles, median: middle } = spreadOf(values);
      const most = Math.max(...values);
      return (
        least <= quartiles[0] &&
        quartiles[0] <= middle &&
        middle <= quartiles[1] &&
        quartiles[1] <= most
      );
    }),
  );
});

test("a ratio is taken within rounds, so that a busy machine does not change it", () => {
  const at = (times: readonly number[]) =>
    times.map((milliseconds, round) => ({ process: 0, round, milliseconds }));
  // Every other round the machine is ten times slower.
  const ours = at([1, 10, 1, 10, 1]);
  expect(pairedRatio(ours, at([3, 30, 3, 30, 3]))).toBe(3);
  expect(pairedRatio(ours, [{ process: 0, round: 3, milliseconds: 25 }])).toBe(2.5);
  expect(pairedRatio(ours, [{ process: 0, round: 7, milliseconds: 4 }])).toBe(4);
});

test("the slope of logarithms is the exponent of a power", () => {
  const points = [1, 2, 8, 32].map((x) => [x, 5 * x ** 1.5] as const);
  expect(logLogSlope(points)).toBeCloseTo(1.5, 12);
  expect(() => logLogSlope([[1, 1]])).toThrow(RangeError);
});

test("the mean of ratios is geometric", () => {
  expect(geometricMean([0.5, 2])).toBeCloseTo(1, 12);
});
