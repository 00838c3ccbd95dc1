import { expect, test } from "vitest";
import { difference, differenceFromDefinition } from "./compare.js";

test("differences are relative to the largest element", () => {
  expect(difference(Float32Array.of(1, 2, 4), Float32Array.of(1, 2.5, 4))).toBe(0.125);
  expect(difference(Float32Array.of(0, 0), Float32Array.of(0, 0))).toBe(0);
});

test("NaN, infinity and other lengths never pass", () => {
  const reference = Float32Array.of(1, 2);
  for (const values of [
    Float32Array.of(1),
    Float32Array.of(1, Number.NaN),
    Float32Array.of(Number.NaN, 2),
    Float32Array.of(Number.POSITIVE_INFINITY, 2),
  ])
    expect(difference(values, reference)).toBe(Number.POSITIVE_INFINITY);
});

test("a definition is evaluated at places all over the result", () => {
  const values = Float32Array.from({ length: 1000 }, (_, i) => i);
  expect(differenceFromDefinition(values, (i) => i)).toBe(0);
  const half = Float32Array.from(values, (value, i) => (i < 900 ? value : 0));
  expect(differenceFromDefinition(half, (i) => i)).toBeGreaterThan(0.9);
});
