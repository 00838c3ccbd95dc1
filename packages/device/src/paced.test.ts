import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { paced } from "./paced.js";

const after = (milliseconds: number): Promise<number> =>
  new Promise((resolve) => setTimeout(() => resolve(milliseconds), milliseconds));

/** How often the event loop turns while `promise` is pending, when something asks for every turn as Dawn does. */
async function turnsWhile(promise: Promise<unknown>): Promise<number> {
  let isPending = true;
  const ended = promise.finally(() => {
    isPending = false;
  });
  let turns = 0;
  while (isPending) {
    await nextTurn();
    turns++;
  }
  await ended;
  return turns;
}

test("a paced wait turns the event loop some hundred times at most, and a plain one far more often", async () => {
  const plain = await turnsWhile(after(200));
  const once = await turnsWhile(paced(after(200)));
  // The first half millisecond is polled; from then on naps last a twentieth of the time.
  expect(once).toBeLessThan(plain / 2);
});

test("waits side by side and one after the other take turns in one chain of naps", async () => {
  await Promise.all(Array.from({ length: 50 }, (_, i) => paced(after(i % 5))));
  for (let i = 0; i < 20; i++) await paced(Promise.resolve(i));
  // About 150 turns. Fifty chains would nap up to 50 ms in each, and take 7.
  expect(await turnsWhile(paced(after(100)))).toBeGreaterThan(15);
});

test("the outcome is the promise's own, and the event loop serves others meanwhile", async () => {
  expect(await paced(Promise.resolve(7))).toBe(7);
  await expect(paced(Promise.reject(new RangeError("lost")))).rejects.toThrow(RangeError);
  const order: number[] = [];
  await Promise.all([
    paced(after(60)).then(() => order.push(60)),
    after(20).then(() => order.push(20)),
  ]);
  expect(order).toEqual([20, 60]);
});
