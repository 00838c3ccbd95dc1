import { expect, test } from "vitest";
import { allInOrder } from "./all-in-order.js";

const later = <T>(turns: number, end: () => T): Promise<T> =>
  turns === 0
    ? Promise.resolve().then(end)
    : new Promise((resolve, reject) => {
        setImmediate(() => later(turns - 1, end).then(resolve, reject));
      });

const failing = (turns: number, message: string): Promise<number> =>
  later(turns, () => {
    throw new RangeError(message);
  });

test("the error is that of the first in order, not in time", async () => {
  const work = [later(2, () => 1), failing(5, "second"), failing(0, "third")];
  await expect(allInOrder(work)).rejects.toThrow("second");
  await expect(allInOrder([failing(3, "first"), failing(1, "second")])).rejects.toThrow("first");
});

test("results have the order of the work", async () => {
  expect(await allInOrder([later(3, () => 1), later(0, () => "two")])).toEqual([1, "two"]);
  expect(await allInOrder([])).toEqual([]);
});
