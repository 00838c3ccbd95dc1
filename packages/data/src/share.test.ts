import { describe, expect, it } from "vitest";
import { shareOf } from "./share.js";

describe("shares of a batch", () => {
  it("make up the batch, whatever the number of ranks, and differ by at most one sample", () => {
    for (const length of [1, 2, 7, 12])
      for (let ranks = 1; ranks <= 5; ranks++) {
        const batch = Uint32Array.from({ length }, (_, i) => 10 * i);
        const shares = Array.from({ length: ranks }, (_, rank) => shareOf(batch, rank, ranks));
        const weights = shares.map(({ weight }) => weight);
        expect(shares.flatMap(({ samples, weight }) => (weight > 0 ? [...samples] : []))).toEqual([
          ...batch,
        ]);
        expect(Math.max(...weights) - Math.min(...weights)).toBeLessThanOrEqual(1);
      }
  });

  it("repeat a sample without weight where none is left", () => {
    expect(shareOf(["a"], 0, 2)).toEqual({
      ...{ samples: ["a"], weight: 0, part: { first: 0, count: 1, total: 1 } },
    });
    expect(shareOf(["a"], 1, 2)).toMatchObject({ samples: ["a"], weight: 1 });
    expect(shareOf([5, 6, 7], 1, 2).part).toEqual({ first: 1, count: 2, total: 3 });
  });

  it("refuse ranks that do not exist, and empty batches", () => {
    expect(() => shareOf([1], 2, 2)).toThrow(RangeError);
    expect(() => shareOf([], 0, 1)).toThrow(RangeError);
  });

  it("refuse what is no batch, and ranks that are no whole numbers", () => {
    const call = shareOf as unknown as (...given: unknown[]) => unknown;
    for (const [batch, fact] of [
      [undefined, "undefined"],
      ["abc", '"abc"'],
      [5, "5"],
    ])
      expect(() => call(batch, 0, 1)).toThrow(
        new TypeError(`shareOf: batch is ${fact}: pass an array of samples or of indices`),
      );
    expect(() => call([1, 2], 0, 1.5)).toThrow("ranks is 1.5: it must be a whole number from 1 on");
    expect(() => call([1, 2], 0, 0)).toThrow("ranks is 0");
    expect(() => call([1, 2], "0", 2)).toThrow(
      'rank is "0": it must be a whole number from 0 to 1',
    );
  });
});
