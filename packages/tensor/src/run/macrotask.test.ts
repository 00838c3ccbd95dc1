import { expect, test, vi } from "vitest";
import { macrotask } from "./macrotask.js";

test.each([
  ["Node", { setImmediate }],
  ["a browser without a scheduler", {}],
])("lets other work in between, in %s", async (_, host) => {
  const order: string[] = [];
  void Promise.resolve().then(() => order.push("microtask"));
  await macrotask(host).then(() => order.push("after"));
  expect(order).toEqual(["microtask", "after"]);
});

test("uses the scheduler of a browser, and no timer", async () => {
  const timer = vi.spyOn(globalThis, "setTimeout");
  const yielded = vi.fn(async () => {});
  await macrotask({ scheduler: { yield: yielded } });
  await macrotask({});
  expect(yielded).toHaveBeenCalledOnce();
  expect(timer).not.toHaveBeenCalled();
  timer.mockRestore();
});
