import { GradScaler } from "@halfstep/grad-scaler";
import { afterAll, expect, test, vi } from "vitest";
import { FurtherMethods } from "../src/tensor/further-methods.js";

// Test files share a process and its modules, in which the first entry is loaded already.
vi.resetModules();
afterAll(() => vi.resetModules());

test("the first entry adds methods to the tensors and runtimes of functions alone", async () => {
  const { ampPrimitives, backward, cpuRuntime, softmax, sum } = await import(
    "../src/functional.js"
  );
  const runtime = cpuRuntime();
  const x = runtime.tensor([1, 2], undefined, { requiresGrad: true });
  const added = Object.getOwnPropertyNames(FurtherMethods.prototype).filter((name) => name in x);
  expect(added).toEqual(["constructor"]);
  backward(sum(softmax(x).mul(x)));
  expect((await x.grad?.toArray())?.length).toBe(2);
  expect(runtime.target.ampPrimitives).toBeUndefined();
  expect(() => cpuRuntime({ provenance: "always" })).toThrow(
    'the options provenance and underflow need the entry "@halfstep/tensor": import it besides "@halfstep/tensor/functional"',
  );
  expect(() => new GradScaler(ampPrimitives(runtime), { targetUnderflow: 0.01 })).toThrow(
    'targetUnderflow needs the primitive countExponents: implement it, or import "@halfstep/tensor" besides "@halfstep/tensor/functional"',
  );
  const first = await import("../src/index.js");
  expect(first.softmax).toBe(softmax);
  expect([...(await x.softmax().toArray())]).toEqual([...(await softmax(x).toArray())]);
  expect(runtime.target.ampPrimitives).toBeDefined();
  expect(new GradScaler(ampPrimitives(runtime), { targetUnderflow: 0.01 }).enabled).toBe(true);
  expect(await cpuRuntime({ provenance: "always" }).nonFiniteOrigin()).toBeUndefined();
});
