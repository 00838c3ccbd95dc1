import { requestTestDevice } from "@halfstep/device/testing";
import { expect, test } from "vitest";
import { accumulate, cpuRuntime, flatten, gpuRuntime, type Runtime } from "../src/index.js";

// Parameters, and gradients, that lie in one buffer, which a launch may not both read and write.

const runtimes: readonly [string, () => Promise<Runtime>][] = [
  ["CPU", async () => cpuRuntime()],
  ["GPU", async () => gpuRuntime(await requestTestDevice())],
];

test.each(runtimes)("what lies in one buffer is added and assigned: %s", async (_, open) => {
  const runtime = await open();
  const pair = () => {
    const options = { requiresGrad: true };
    const a = runtime.variable([1, 2, 3, 4], [2, 2], { ...options, name: "a" });
    const b = runtime.variable([10, 20, 30, 40], [2, 2], { ...options, name: "b" });
    flatten([a, b]);
    return { a, b };
  };
  const plain = pair();
  await runtime.step(() => {
    accumulate(plain.a, plain.b);
    accumulate(plain.b, plain.b);
  });
  expect([...(await plain.a.toArray())]).toEqual([11, 22, 33, 44]);
  expect([...(await plain.b.toArray())]).toEqual([20, 40, 60, 80]);

  const { a, b } = pair();
  await runtime.step(() => {
    a.mul(b).sum().backward();
    if (b.grad) a.backward({ gradient: b.grad });
    if (a.grad) a.backward({ gradient: a.grad });
  });
  // b + a, twice.
  expect([...((await a.grad?.toArray()) ?? [])]).toEqual([22, 44, 66, 88]);
  expect([...((await b.grad?.toArray()) ?? [])]).toEqual([1, 2, 3, 4]);
});

test("only tensors of one shape are added", () => {
  const runtime = cpuRuntime();
  const square = runtime.variable([1, 2, 3, 4], [2, 2], { name: "square" });
  expect(() => accumulate(square, runtime.tensor([1, 2, 3, 4]))).toThrow(
    "accumulate: square is [2,2] and the value [4]: give them one shape",
  );
});
