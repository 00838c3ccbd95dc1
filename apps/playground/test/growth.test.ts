import { growthOf } from "@halfstep/browser";
import { expect, test } from "vitest";

const samples = (bytesOf: (i: number) => number): number[] =>
  Array.from({ length: 300 }, (_, i) => bytesOf(i));

const megabyte = 1e6;

test("what grows for good is a leak, among garbage, too", () => {
  const { grown, isLeak } = growthOf(samples((i) => 10 * megabyte + 2000 * i + 5e5 * (i % 7)));
  expect(grown).toBeGreaterThan(150_000);
  expect(isLeak).toBe(true);
});

test("caches that fill, garbage, and logs of fixed length are none", () => {
  expect(growthOf(samples((i) => 10 * megabyte + 1e5 * Math.min(i, 90))).isLeak).toBe(false);
  expect(growthOf(samples((i) => 10 * megabyte + 2e5 * (i % 40))).isLeak).toBe(false);
});
