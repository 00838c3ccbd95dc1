import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  EXPONENT_BINS,
  nextScaleState,
  scalerRule,
  underflowShare,
  underflowShift,
} from "./index.js";

/** How many numbers have each exponent field. */
function histogram(values: readonly number[]): number[] {
  const counts = new Array<number>(EXPONENT_BINS).fill(0);
  for (const bits of new Uint32Array(Float32Array.from(values).buffer)) {
    const field = (bits >>> 23) & 255;
    counts[field] = (counts[field] ?? 0) + 1;
  }
  return counts;
}

/** What is left of a number in float16, written down without tables. */
function inFloat16(value: number): number {
  const ulp = 2 ** Math.max(Math.floor(Math.log2(Math.abs(value))) - 10, -24);
  const q = value / ulp;
  const floor = Math.floor(q);
  const up = q - floor > 0.5 || (q - floor === 0.5 && floor % 2 !== 0);
  return (floor + (up ? 1 : 0)) * ulp;
}

const gradients = fc.array(
  fc
    .tuple(fc.integer({ min: -60, max: 14 }), fc.double({ min: 1, max: 2, noNaN: true }))
    .map(([exponent, mantissa]) => Math.fround(2 ** exponent * Math.min(mantissa, 1.999))),
  { minLength: 1, maxLength: 200 },
);

describe("underflow in float16", () => {
  test("is the share that rounds to zero", () => {
    fc.assert(
      fc.property(gradients, (values) => {
        const exact = values.filter((value) => value === 2 ** -25).length;
        const lost = values.filter((value) => inFloat16(value) === 0).length;
        // A tie at 2^-25 itself rounds to zero too: one number of its octave.
        const share = underflowShare(histogram(values), "float16");
        expect(Math.round(share * values.length)).toBe(lost - exact);
      }),
    );
  });

  test("after the shift is at most the target, or the largest gradient stands at half the range", () => {
    let reached = 0;
    let stopped = 0;
    fc.assert(
      fc.property(gradients, fc.double({ min: 0.001, max: 0.9 }), (values, target) => {
        const shift = underflowShift(histogram(values), target, "float16");
        const scaled = values.map((value) => value * 2 ** shift);
        const share = underflowShare(histogram(scaled), "float16");
        const largest = Math.max(...scaled);
        expect(largest).toBeLessThan(2 ** 15);
        if (share <= target + 2 ** -16) {
          reached += 1;
          // And one octave less would not do.
          const less = histogram(scaled.map((value) => value / 2));
          if (shift > 0) expect(underflowShare(less, "float16")).toBeGreaterThan(target - 2 ** -16);
        } else {
          stopped += 1;
          expect(largest * 2 >= 2 ** 15 || shift === 32).toBe(true);
        }
      }),
      { numRuns: 500 },
    );
    expect(Math.min(reached, stopped)).toBeGreaterThan(10);
  });

  test("counts neither zeros nor infinities, and asks for twice as much where gradients are all zero", () => {
    const counts = histogram([
      0,
      -0,
      2 ** -140,
      Number.NaN,
      Number.POSITIVE_INFINITY,
      1,
      -(2 ** -30),
    ]);
    expect(underflowShare(counts, "float16")).toBe(0.5);
    expect(underflowShift(histogram([Number.NaN]), 0.1, "float16")).toBe(0);
    expect(underflowShift(histogram([0, 0, Number.NaN]), 0.1, "float16")).toBe(1);
    expect(underflowShare(histogram([0]), "float16")).toBe(0);
    expect(underflowShift(histogram([2 ** -40, 1]), 0.1, "bfloat16")).toBe(0);
    expect(underflowShift(histogram([3e38]), 0.1, "bfloat16")).toBe(-1);
  });

  test("counts what stores have rounded to zero, up to where the largest of them may go", () => {
    const bitsOf = (value: number): number =>
      new Uint32Array(Float32Array.of(value).buffer)[0] as number;
    const seen = (values: number[], lost: number, zeros: number, largest: number, all: number) => [
      ...histogram(values),
      ...[lost, zeros, bitsOf(largest), all],
    ];
    // Of 8 numbers that were not 0, 4 were lost, the largest of them 2^-20.
    const half = seen([0, 1, 1], 4, 2, 2 ** -20, 10);
    expect(underflowShare(half, "float16")).toBe(0.5);
    expect([0.4, 0.5].map((target) => underflowShift(half, target, "float16"))).toEqual([14, 0]);
    const all = seen([0, 0, 0], 6, 0, 1e-9, 6);
    expect(underflowShare(all, "float16")).toBe(1);
    expect(underflowShift(all, 0.01, "float16")).toBe(32);
    expect(underflowShift(seen([2 ** -10], 1, 0, 2 ** 12, 9), 0.01, "float16")).toBe(2);
  });

  test("is counted exactly up to 2^32 gradients", () => {
    const counts = new Array<number>(EXPONENT_BINS).fill(0);
    counts[127] = 2 ** 32 - 2 ** 16 - 1;
    counts[127 - 30] = 2 ** 16;
    const target = 2 ** -16;
    expect(underflowShift(counts, target, "float16")).toBe(5);
    counts[127 - 30] = 2 ** 16 - 1;
    counts[127] += 1;
    expect(underflowShift(counts, target, "float16")).toBe(0);
  });
});

test("a rule with targetUnderflow grows only where exponents were counted", () => {
  const rule = scalerRule(undefined, { targetUnderflow: 0.1, growthInterval: 2, initScale: 8 });
  const small = histogram([2 ** -30, 1]);
  const due = { scale: 8, growthTracker: 1 };
  expect(nextScaleState(due, false, rule)).toEqual({ scale: 8, growthTracker: 2 });
  expect(nextScaleState(due, false, rule, small)).toEqual({ scale: 2 ** 8, growthTracker: 0 });
  expect(nextScaleState({ ...due, growthTracker: 0 }, false, rule, small)).toEqual({
    ...{ scale: 8, growthTracker: 1 },
  });
  const large = histogram([2 ** 20]);
  expect(nextScaleState({ ...due, growthTracker: 0 }, false, rule, large)).toEqual({
    ...{ scale: 2 ** -3, growthTracker: 0 },
  });
  expect(nextScaleState(due, true, rule, small)).toEqual({ scale: 4, growthTracker: 0 });
});
