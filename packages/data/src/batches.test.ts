import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { batches, permutation, shuffledBatches } from "./batches.js";

const lists = (from: Iterable<Uint32Array>): number[][] => [...from].map((batch) => [...batch]);

describe("permutation", () => {
  it("holds every index once", () => {
    fc.assert(
      fc.property(fc.nat(300), fc.maxSafeNat(), fc.nat(1000), (count, seed, epoch) => {
        const sorted = permutation(count, seed, epoch).toSorted();
        return sorted.length === count && sorted.every((value, index) => value === index);
      }),
    );
  });

  it("never changes: other runs of a seed depend on it", () => {
    expect([...permutation(10, 0, 0)]).toEqual([0, 2, 6, 3, 5, 7, 9, 4, 8, 1]);
  });

  it("differs between epochs, seeds, and seeds that share their low 32 bits", () => {
    const orders = [
      [1, 0],
      [1, 1],
      [2, 0],
      [2 ** 32 + 1, 0],
    ].map(([seed, epoch]) => permutation(50, seed as number, epoch as number).join());
    expect(new Set(orders).size).toBe(4);
  });

  it("puts every sample everywhere equally often", () => {
    const size = 5;
    const rounds = 20_000;
    const seen = new Float64Array(size * size);
    for (let epoch = 0; epoch < rounds; epoch++) {
      for (const [place, sample] of permutation(size, 3, epoch).entries()) {
        seen[place * size + sample] = (seen[place * size + sample] as number) + 1;
      }
    }
    const deviation = Math.sqrt((rounds / size) * (1 - 1 / size));
    const worst = Math.max(...seen.map((count) => Math.abs(count - rounds / size) / deviation));
    expect(worst).toBeLessThan(5);
  });
});

describe("batches", () => {
  it("keeps the order of the data set, with or without the last short batch", () => {
    expect(lists(batches({ count: 5, batchSize: 2 }))).toEqual([[0, 1], [2, 3], [4]]);
    expect(lists(batches({ count: 5, batchSize: 2, dropLast: true }))).toEqual([
      [0, 1],
      [2, 3],
    ]);
    expect(lists(batches({ count: 0, batchSize: 2 }))).toEqual([]);
  });
});

describe("shuffledBatches", () => {
  const options = { count: 10, batchSize: 4, seed: 7 };

  it("hands out each epoch's permutation in batches", () => {
    const sampler = shuffledBatches(options);
    for (const epoch of [0, 1, 2]) {
      const found = lists(sampler);
      expect(found.map((batch) => batch.length)).toEqual([4, 4, 2]);
      expect(found.flat()).toEqual([...permutation(10, 7, epoch)]);
    }
    expect(sampler.state()).toEqual({ epoch: 3, position: 0 });
  });

  it("leaves out the short batch with dropLast", () => {
    const sampler = shuffledBatches({ ...options, dropLast: true });
    expect(sampler.batchesPerEpoch).toBe(2);
    expect(lists(sampler).flat()).toEqual([...permutation(10, 7, 0)].slice(0, 8));
    expect(sampler.state()).toEqual({ epoch: 1, position: 0 });
    expect(shuffledBatches(options).batchesPerEpoch).toBe(3);
  });

  it("continues from a saved state as the unbroken run does, whichever batch it was saved after", () => {
    const unbroken = shuffledBatches(options);
    const all = [...lists(unbroken), ...lists(unbroken), ...lists(unbroken)];
    const found = Array.from({ length: 6 }, (_, breakAfter) => {
      const first = shuffledBatches(options);
      const before: number[][] = [];
      while (before.length < breakAfter) {
        for (const batch of first) {
          before.push([...batch]);
          if (before.length === breakAfter) break;
        }
      }
      const second = shuffledBatches(options);
      second.loadState(JSON.parse(JSON.stringify(first.state())));
      const after: number[][] = [];
      while (before.length + after.length < all.length) after.push(...lists(second));
      return [...before, ...after];
    });
    expect(found).toEqual(Array.from({ length: 6 }, () => all));
  });

  it("finishes the epoch in the next loop after a break", () => {
    const sampler = shuffledBatches(options);
    for (const _ of sampler) break;
    expect(lists(sampler).flat()).toEqual([...permutation(10, 7, 0)].slice(4));
  });

  it.each([
    [{ batchSize: 0 }, "batchSize is 0"],
    [{ count: 0 }, "count is 0"],
    [{ seed: -1 }, "seed is -1"],
    [{ epoch: 0.5 }, "epoch is 0.5"],
    [{ batchSize: 11, dropLast: true }, "dropLast leaves nothing of 10 samples"],
  ])("refuses %j", (change, message) => {
    expect(() => shuffledBatches({ ...options, ...change })).toThrow(message);
  });

  it("refuses a state that cannot be its own", () => {
    expect(() => shuffledBatches(options).loadState({ epoch: 0, position: 10 })).toThrow(
      "position is 10",
    );
  });
});

describe("wrong arguments", () => {
  const options = { count: 10, batchSize: 4, seed: 7 };

  it.each([
    ["batches", batches, "count, batchSize, dropLast"],
    ["shuffledBatches", shuffledBatches, "count, batchSize, seed, epoch, dropLast"],
  ])("of %s are refused where it is called", (name, make, known) => {
    const call = make as (given?: unknown) => unknown;
    expect(() => call()).toThrow(
      new TypeError(`${name}: the options are undefined: pass an object with ${known}`),
    );
    for (const unknown of ["drop_last", "shuffle"])
      expect(() => call({ count: 10, batchSize: 4, [unknown]: true })).toThrow(
        `${name}: there is no option "${unknown}"; pass any of ${known}`,
      );
    expect(() => call({ count: 10 })).toThrow("batchSize is undefined: it must be a whole number");
    expect(() => call({ count: 10, batchSize: "4" })).toThrow('batchSize is "4"');
  });

  it("of dropLast and of states are refused", () => {
    expect(() => shuffledBatches({ ...options, dropLast: "no" as unknown as boolean })).toThrow(
      'dropLast is "no": it must be true or false',
    );
    expect(() => shuffledBatches(options).loadState(null as never)).toThrow(
      new TypeError(
        "loadState: the state is null: pass what state() returned, { epoch, position }",
      ),
    );
  });
});
