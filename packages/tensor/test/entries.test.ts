import { afterAll, expect, test, vi } from "vitest";
import { FurtherMethods } from "../src/tensor/further-methods.js";

// Test files share a process and its modules, in which the first entry is loaded already.
vi.resetModules();
afterAll(() => vi.resetModules());

test("the first entry adds methods to the tensors of functions alone", async () => {
  const { cpuRuntime, softmax } = await import("../src/functional.js");
  const x = cpuRuntime().tensor([1, 2], undefined, { requiresGrad: true });
  const added = Object.getOwnPropertyNames(FurtherMethods.prototype).filter((name) => name in x);
  expect(added).toEqual(["constructor"]);
  softmax(x).mul(x).sum().backward();
  expect((await x.grad?.toArray())?.length).toBe(2);
  const first = await import("../src/index.js");
  expect(first.softmax).toBe(softmax);
  expect([...(await x.softmax().toArray())]).toEqual([...(await softmax(x).toArray())]);
});
