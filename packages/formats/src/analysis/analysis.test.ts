import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { bfloat16 } from "../bfloat16.js";
import { BFloat16Array } from "../bfloat16-array.js";
import { float4e2m1fn } from "../float4e2m1fn.js";
import { float8e4m3fn } from "../float8e4m3fn.js";
import { float8e8m0fnu } from "../float8e8m0fnu.js";
import { float16 } from "../float16.js";
import { compare } from "./compare.js";
import { addHistograms, exponentHistogram } from "./histogram.js";
import { lostUpdates } from "./lost-updates.js";
import { recommendScale } from "./recommend-scale.js";

/** About Gaussian, the same on every machine. */
function gradients(length: number, scale: number): Float32Array {
  let state = 12345;
  const uniform = (): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32 - 0.5;
  };
  return Float32Array.from(
    { length },
    () => scale * (uniform() + uniform() + uniform() + uniform()),
  );
}

describe("compare", () => {
  test("each loss in its place", () => {
    const values = [1, 70000, -1e-9, 2 ** -20 * 1.001, 0, Number.NaN, -Infinity, 1.0001];
    const error = 1 - 1 / 1.0001;
    const subnormalError = Math.abs(float16.round(2 ** -20 * 1.001) / (2 ** -20 * 1.001) - 1);
    const result = compare(values, float16);
    expect(result).toMatchObject({
      count: 8,
      nonFinite: 2 / 8,
      overflow: 1 / 6,
      underflow: 1 / 6,
      subnormal: 1 / 6,
      maxRelativeError: 1,
    });
    expect(result.meanRelativeError).toBeCloseTo((1 + error + subnormalError) / 4, 12);
    expect(result.sqnr).toBeCloseTo(10 * Math.log10((1 + 1.0001 ** 2) / 0.0001 ** 2), 5);
  });

  test("tells of a layer that is all zeros that they were zeros before", () => {
    const stored = Float32Array.from([1e-9, -1e-9, 0], (value) => float16.round(value));
    expect(compare([1e-9, -1e-9, 0], float16)).toMatchObject({ underflow: 2 / 3, zeros: 1 / 3 });
    expect(compare(stored, float16)).toMatchObject({ underflow: 0, zeros: 1 });
    expect(compare([0, 1], float8e8m0fnu).zeros).toBe(0.5);
  });

  test("exact numbers, zeros and nothing at all", () => {
    for (const values of [[1, -2, 0.5, 0], [0, -0], []]) {
      expect(compare(values, bfloat16)).toMatchObject({
        overflow: 0,
        underflow: 0,
        maxRelativeError: 0,
        meanRelativeError: 0,
        sqnr: Infinity,
      });
    }
  });

  test("what formats without infinity do with large numbers is an overflow too", () => {
    expect(compare([448, 464, 465], float8e4m3fn).overflow).toBeCloseTo(1 / 3, 15);
    expect(compare([6, 6.9, 7, -100], float4e2m1fn)).toMatchObject({ overflow: 0.5, nonFinite: 0 });
    expect(compare([1, 0, -1], float8e8m0fnu).overflow).toBeCloseTo(2 / 3, 15);
  });

  test("arrays longer than a chunk, of any kind, agree with one another and with the format", () => {
    const values = gradients(20_001, 1e-5);
    const result = compare(values, float16);
    expect(compare([...values], float16)).toEqual(result);
    expect(compare(Float64Array.from(values), float16)).toEqual(result);
    const kinds = [...values].map((value) => float16.classify(value).kind);
    expect(result.subnormal * values.length).toBeCloseTo(
      kinds.filter((kind) => kind === "subnormal").length,
      6,
    );
    expect(result.underflow * values.length).toBeCloseTo(
      kinds.filter((kind, i) => kind === "zero" && values[i] !== 0).length,
      6,
    );
  });

  test("float16 and bfloat16 have 18 dB between them: three mantissa bits", () => {
    const values = gradients(10_000, 1);
    const difference = compare(values, float16).sqnr - compare(values, bfloat16).sqnr;
    expect(difference).toBeGreaterThan(17.5);
    expect(difference).toBeLessThan(18.5);
  });

  test("squares neither overflow nor vanish", () => {
    const { sqnr } = compare([1.001, 3.003, 7.007], bfloat16);
    const large = compare(
      [1.001, 3.003, 7.007].map((value) => value * 2 ** 120),
      bfloat16,
    );
    expect(large.sqnr).toBeCloseTo(sqnr, 9);
    expect(compare([1.1 * 2 ** 900, 1], float16)).toMatchObject({ overflow: 0.5, sqnr: Infinity });
  });
});

describe("exponentHistogram", () => {
  test("powers of two, kinds, and limits", () => {
    const values = [1, 1.99, -2, 0.5, 0, -0, Number.NaN, Infinity, -Infinity];
    expect(exponentHistogram(values)).toEqual({
      count: 9,
      zeros: 2,
      infinities: 2,
      nans: 1,
      min: 0.5,
      max: 2,
      firstExponent: -1,
      counts: [1, 2, 1],
    });
  });

  test("float64's ends", () => {
    const { firstExponent, counts } = exponentHistogram([
      Number.MIN_VALUE,
      2 ** -1023,
      Number.MAX_VALUE,
    ]);
    expect([firstExponent, counts.length]).toEqual([-1074, 2098]);
    expect([counts[0], counts[51], counts[2097]]).toEqual([1, 1, 1]);
  });

  test("the histograms of parts add up to that of all", () => {
    const number = fc.double();
    fc.assert(
      fc.property(fc.array(number), fc.array(number), (a, b) => {
        expect(addHistograms(exponentHistogram(a), exponentHistogram(b))).toEqual(
          exponentHistogram([...a, ...b]),
        );
      }),
    );
  });
});

describe("lostUpdates", () => {
  test("an update of half a unit is lost, of more is partial or whole", () => {
    const weights = [1, 1, 1, 1, 1, Number.NaN];
    const updates = [2 ** -11, 2 ** -11 * 1.01, 2 ** -10, -(2 ** -12), 0, 1];
    expect(lostUpdates(weights, updates, float16)).toEqual({
      updates: 4,
      lost: 0.5,
      partial: 0.25,
      meanRelativeError: (2 + (2 / 1.01 - 1)) / 4,
    });
  });

  test("the paper's bound: float16 loses what is 2048 times smaller, bfloat16 what is 256 times", () => {
    const weights = new Float32Array(10_000).fill(1.5);
    const share = (ratio: number, format: typeof float16): number =>
      lostUpdates(weights, new Float32Array(10_000).fill(1 / ratio), format).lost;
    expect([share(2047, float16), share(2048.5, float16)]).toEqual([0, 1]);
    expect([share(255, bfloat16), share(256.5, bfloat16)]).toEqual([0, 1]);
  });

  test("weights are taken as stored, sums that overflow are no loss", () => {
    expect(lostUpdates([1 + 2 ** -12], [2 ** -10], float16)).toMatchObject({ lost: 0, partial: 0 });
    expect(lostUpdates([65504], [65504], float16)).toEqual({
      updates: 1,
      lost: 0,
      partial: 0,
      meanRelativeError: 0,
    });
    expect(() => lostUpdates([1], [1, 2], float16)).toThrow(
      "lostUpdates: 1 weights and 2 updates: pass one update a weight",
    );
  });
});

describe("recommendScale", () => {
  test("the largest magnitude lands below the maximum, and gets there", () => {
    fc.assert(
      fc.property(fc.double({ min: 1e-30, max: 1e30, noNaN: true }), (max) => {
        const { scale, overflow } = recommendScale(exponentHistogram([max, max / 7]), float16);
        const isLargest = max * scale <= 65504 && max * scale * 2 > 65504;
        return overflow === 0 && (isLargest || (scale === 1 && max / 7 >= 2 ** -14));
      }),
    );
  });

  test("expected shares are near the true ones", () => {
    const values = gradients(50_000, 1e-6);
    const histogram = exponentHistogram(values);
    const { scale, unscaled, ...expected } = recommendScale(histogram, float16);
    const before = compare(values, float16);
    const after = compare(
      values.map((value) => value * scale),
      float16,
    );
    for (const share of ["overflow", "underflow", "subnormal"] as const) {
      expect(Math.abs(unscaled[share] - before[share])).toBeLessThan(0.005);
      expect(Math.abs(expected[share] - after[share])).toBeLessThan(0.005);
    }
    expect(before.underflow).toBeGreaterThan(0.03);
    expect(after.underflow).toBe(0);
  });

  test("an outlier may be given up for the rest", () => {
    const values = new Float64Array(1000).fill(1e-6);
    values[0] = 1e4;
    const histogram = exponentHistogram(values);
    expect(recommendScale(histogram, float8e4m3fn).exponent).toBe(-5);
    const result = recommendScale(histogram, float8e4m3fn, { allowedOverflow: 0.002 });
    expect(result.overflow).toBe(0.001);
    expect(result.scale * 1e-6).toBeGreaterThan(100);
  });

  test("no scale where none is needed", () => {
    expect(recommendScale(exponentHistogram([1e-30, 1, -3, 0]), bfloat16)).toMatchObject({
      scale: 1,
      overflow: 0,
      explanation:
        "bfloat16 holds all these numbers without overflow or subnormals: no scale is needed.",
    });
  });

  test("margin, limits and the explanation", () => {
    const histogram = exponentHistogram([1e-6, 3e-4, -7e-3, 0]);
    const { exponent, explanation } = recommendScale(histogram, float16, { margin: 2 });
    expect(exponent).toBe(21);
    expect(explanation).toBe(
      "At 2^21 the largest magnitude, 0.007, becomes 14680; float16 ends at 65504 (a margin of 2 powers of two is kept). Expected: 0 % overflow, 0 % underflow to 0, 0 % subnormal; without a scale: 0 % overflow, 0 % underflow to 0, 25 % subnormal.",
    );
    expect(recommendScale(exponentHistogram([Number.MIN_VALUE]), float16).exponent).toBe(127);
    expect(recommendScale(exponentHistogram([Number.MAX_VALUE]), float16).exponent).toBe(-126);
    expect(recommendScale(exponentHistogram([0, Number.NaN]), float16)).toMatchObject({
      scale: 1,
      explanation:
        "There is no finite number but 0, so nothing tells which scale to take: if these numbers were rounded before, count what became 0 " +
        "where they were stored.",
    });
  });

  test("options that make no sense, and e8m0, are refused", () => {
    const histogram = exponentHistogram([1]);
    expect(() => recommendScale(histogram, float16, { margin: 0.5 })).toThrow(RangeError);
    expect(() => recommendScale(histogram, float16, { allowedOverflow: 1 })).toThrow(RangeError);
    expect(() => recommendScale(histogram, float8e8m0fnu)).toThrow(
      "recommendScale: float8e8m0fnu is a format of scales: name an element's",
    );
  });
});

test("arrays of codes are read as the numbers they stand for", () => {
  const values = [1, 1.0078125, -3, 2 ** -100, Number.NaN];
  const array = BFloat16Array.of(...values);
  expect(compare(array, float16)).toEqual(compare(values, float16));
  expect(exponentHistogram(array)).toEqual(exponentHistogram(values));
  const updates = values.map(() => 2 ** -12);
  expect(lostUpdates(array, updates, float16)).toEqual(lostUpdates(values, updates, float16));
});
