import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { stratifiedSample } from "./stratified-sample.js";

const countsOf = (labels: ArrayLike<number>, places: ArrayLike<number>): Map<number, number> => {
  const counts = new Map<number, number>();
  for (const place of Array.from(places)) {
    const label = labels[place] as number;
    counts.set(label, (counts.get(label) ?? 0) + 1);
  }
  return counts;
};

describe("a stratified sample", () => {
  it("has the classes in their proportions, whatever their order", () => {
    const inOrder = Array.from({ length: 100 }, (_, i) => (i < 60 ? 0 : i < 90 ? 1 : 2));
    const mixed = inOrder.map((_, i) => inOrder[(i * 37) % 100] as number);
    for (const labels of [inOrder, mixed]) {
      const places = stratifiedSample(labels, 20, 0);
      expect([...countsOf(labels, places)].sort()).toEqual([
        [0, 12],
        [1, 6],
        [2, 2],
      ]);
    }
  });

  it("follows from the seed", () => {
    const labels = Array.from({ length: 50 }, (_, i) => i % 3);
    const [first, again, other] = [1, 1, 2].map((seed) => stratifiedSample(labels, 10, seed));
    expect(again).toEqual(first);
    expect(other).not.toEqual(first);
  });

  it("gives a rare class one place before another has its second", () => {
    const labels = [...new Array<number>(1000).fill(0), 7, 8, 9];
    const counts = countsOf(labels, stratifiedSample(labels, 4, 0));
    expect([...counts.values()]).toEqual([1, 1, 1, 1]);
    expect(countsOf(labels, stratifiedSample(labels, 10, 0)).get(0)).toBe(7);
    expect(stratifiedSample(labels, 2, 0)).toHaveLength(2);
  });

  it("is the whole set, in its order, where that is no larger", () => {
    expect([...stratifiedSample([4, 4, 2], 3, 0)]).toEqual([0, 1, 2]);
    expect([...stratifiedSample([4, 4, 2], 9, 0)]).toEqual([0, 1, 2]);
    expect(stratifiedSample([], 9, 0)).toHaveLength(0);
    expect(stratifiedSample([1, 2], 0, 0)).toHaveLength(0);
  });

  it("has as many places as asked for, rising and each once, and no class has more than one too few or too many", () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(5), { maxLength: 80 }),
        fc.nat(90),
        fc.nat(1000),
        (labels, count, seed) => {
          const places = [...stratifiedSample(labels, count, seed)];
          expect(places).toHaveLength(Math.min(count, labels.length));
          expect(places).toEqual([...new Set(places)].sort((a, b) => a - b));
          const found = countsOf(labels, places);
          const all = countsOf(
            labels,
            labels.map((_, i) => i),
          );
          if (count < all.size) return;
          for (const [label, size] of all) expect(found.get(label)).toBeLessThanOrEqual(size);
          expect(found.size).toBe(labels.length === 0 ? 0 : all.size);
        },
      ),
      { numRuns: 300 },
    );
  });

  it("refuses counts and seeds that are none", () => {
    expect(() => stratifiedSample([1], -1, 0)).toThrow(RangeError);
    expect(() => stratifiedSample([1], 1.5, 0)).toThrow(RangeError);
    expect(() => stratifiedSample([1, 2], 1, -1)).toThrow(RangeError);
  });
});

it("refuses what are no labels", () => {
  const call = stratifiedSample as unknown as (...given: unknown[]) => unknown;
  for (const [labels, fact] of [
    [undefined, "undefined"],
    ["001", '"001"'],
  ])
    expect(() => call(labels, 1, 0)).toThrow(
      new TypeError(
        `stratifiedSample: labels is ${fact}: pass an array with the class of each sample`,
      ),
    );
  expect(() => call([0, 1], "1", 0)).toThrow('count is "1": it must be a whole number from 0 on');
});
