import { setTimeout as wait } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { shuffledBatches } from "./batches.js";
import { prefetch } from "./prefetch.js";

it("keeps the order, whatever is ready first, and is so many ahead", async () => {
  const begun: number[] = [];
  const used: number[] = [];
  let mostAhead = 0;
  const make = async (item: number): Promise<number> => {
    begun.push(item);
    await wait(item % 3 === 0 ? 8 : 1);
    return 10 * item;
  };
  for await (const made of prefetch([0, 1, 2, 3, 4, 5, 6], make, { ahead: 2 })) {
    used.push(made);
    mostAhead = Math.max(mostAhead, begun.length - used.length);
  }
  expect(used).toEqual([0, 10, 20, 30, 40, 50, 60]);
  expect(begun).toEqual([0, 1, 2, 3, 4, 5, 6]);
  expect(mostAhead).toBe(2);
});

it("throws an error where its result would be, and ends the source when the loop is left", async () => {
  let isClosed = false;
  function* items(): Generator<number> {
    try {
      for (let i = 0; ; i++) yield i;
    } finally {
      isClosed = true;
    }
  }
  const seen: number[] = [];
  const make = async (item: number): Promise<number> => {
    if (item >= 2) throw new Error(`no ${item}`);
    return item;
  };
  const run = async (): Promise<void> => {
    for await (const made of prefetch(items(), make, { ahead: 3 })) {
      seen.push(made);
      await wait(2);
    }
  };
  await expect(run()).rejects.toThrow("no 2");
  expect(seen).toEqual([0, 1]);
  expect(isClosed).toBe(true);
});

it("gives what is thrown at once its place", async () => {
  const seen: number[] = [];
  const make = (item: number): Promise<number> => {
    if (item === 2) throw new Error("no 2");
    return Promise.resolve(item);
  };
  const run = async (): Promise<void> => {
    for await (const made of prefetch([0, 1, 2], make, { ahead: 2 })) seen.push(made);
  };
  await expect(run()).rejects.toThrow("no 2");
  expect(seen).toEqual([0, 1]);
});

it("has nothing of nothing, and refuses a distance that is none", async () => {
  const none = prefetch([], async () => 1);
  expect(await none.next()).toEqual({ done: true, value: undefined });
  await expect(prefetch([1], async () => 1, { ahead: 0 }).next()).rejects.toThrow(RangeError);
});

describe("of a sampler", () => {
  const options = { count: 10, batchSize: 2, seed: 1 };
  const list = async (indices: Uint32Array): Promise<string> => indices.join();
  const epochs = (count: number): string[] => {
    const sampler = shuffledBatches(options);
    return Array.from({ length: count }, () => [...sampler].map((each) => each.join())).flat();
  };

  it.each([1, 2, 7])(
    "counts what the loop has, %i ahead, as an unbroken run does",
    async (ahead) => {
      const direct = shuffledBatches(options);
      const sampler = shuffledBatches(options);
      for (const indices of direct) void indices;
      const states: unknown[] = [];
      for await (const _ of prefetch(sampler, list, { ahead })) states.push(sampler.state());
      expect(states).toEqual([
        ...[2, 4, 6, 8].map((position) => ({ epoch: 0, position })),
        direct.state(),
      ]);
    },
  );

  it("loses no batch when the loop is left, and the state after any batch continues", async () => {
    for (let breakAfter = 1; breakAfter < 10; breakAfter++) {
      const seen: string[] = [];
      const first = shuffledBatches(options);
      while (seen.length < breakAfter)
        for await (const made of prefetch(first, list, { ahead: 3 })) {
          seen.push(made);
          if (seen.length === breakAfter) break;
        }
      const second = shuffledBatches(options);
      second.loadState(JSON.parse(JSON.stringify(first.state())));
      for (const sampler of [first, second]) {
        const rest: string[] = [];
        while (seen.length + rest.length < 10)
          for await (const made of prefetch(sampler, list)) rest.push(made);
        expect([...seen, ...rest]).toEqual(epochs(2));
      }
    }
  });

  it("does not count a batch that could not be made", async () => {
    const sampler = shuffledBatches(options);
    let calls = 0;
    const make = async (indices: Uint32Array): Promise<string> => {
      if (++calls === 2) throw new Error("no second");
      return list(indices);
    };
    const seen: string[] = [];
    const run = async (): Promise<void> => {
      for await (const made of prefetch(sampler, make)) seen.push(made);
    };
    await expect(run()).rejects.toThrow("no second");
    await run();
    expect(seen).toEqual(epochs(1));
  });

  it("refuses to go on where the sampler was moved meanwhile", async () => {
    const sampler = shuffledBatches(options);
    const run = async (): Promise<void> => {
      for await (const _ of prefetch(sampler, list)) sampler.loadState({ epoch: 4, position: 2 });
    };
    await expect(run()).rejects.toThrow(/^prefetch: the sampler was moved, by loadState .*: leave/);
    expect(sampler.state()).toEqual({ epoch: 4, position: 2 });
  });
});

it.each([
  [[[1]], "prefetch: make is undefined: pass a function that makes a result of an item"],
  [[undefined, String], "prefetch: items is undefined: pass an iterable, such as a sampler"],
  [[{ length: 1 }, String], "prefetch: items is an Object: pass an iterable"],
  [[[1], String, { depth: 1 }], 'prefetch: there is no option "depth"; pass any of ahead'],
  [[[1], String, { ahead: "2" }], 'ahead is "2": it must be a whole number from 1 on'],
])("refuses %j in the loop", async (args, message) => {
  const call = prefetch as unknown as (...given: unknown[]) => AsyncGenerator<unknown>;
  await expect(call(...args).next()).rejects.toThrow(message);
});
