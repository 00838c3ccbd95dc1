import { setTimeout as wait } from "node:timers/promises";
import { expect, it } from "vitest";
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
