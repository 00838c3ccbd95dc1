import { expect, test } from "vitest";
import { grad } from "../backward/backward.js";
import { ShapeError } from "../errors.js";
import { flatten } from "./flatten.js";
import { cpuRuntime } from "./runtime.js";

const mark = { scaler: {}, lossId: 0, epoch: 0, isUnscaled: false };

test("setGrad makes a gradient present, replaces it and removes it", async () => {
  const runtime = cpuRuntime();
  const weight = runtime.variable([1, 2], [2], { requiresGrad: true });
  weight.setGrad(runtime.tensor([3, 4], [2]));
  expect(await weight.grad?.toArray()).toEqual(Float32Array.of(3, 4));
  weight.setGrad(weight.grad?.mul(0.5));
  expect(await weight.grad?.toArray()).toEqual(Float32Array.of(1.5, 2));
  await runtime.step(() => weight.square().sum().backward());
  expect(await weight.grad?.toArray()).toEqual(Float32Array.of(3.5, 6));
  weight.setGrad(undefined);
  expect(weight.grad).toBeUndefined();
});

test("setGrad copies: what is given may change, and has any floating dtype", async () => {
  const runtime = cpuRuntime();
  const weight = runtime.variable([1, 2], [2], { requiresGrad: true });
  const given = runtime.variable([1, 2 ** -11 + 1], [2], { dtype: "float16" });
  weight.setGrad(given);
  given.assign(runtime.tensor([7, 7], [2]));
  expect(weight.grad?.dtype).toBe("float32");
  expect(await weight.grad?.toArray()).toEqual(Float32Array.of(1, 1));
});

test("setGrad writes where an optimizer looks, and is undone with its step", async () => {
  const runtime = cpuRuntime();
  const weight = runtime.variable([1, 2], [2], { requiresGrad: true });
  const flat = flatten([weight]);
  weight.setGrad(runtime.tensor([3, 4], [2]));
  expect(weight.grad?.storage).toBe(flat.gradients);
  weight.zeroGrad();
  await expect(
    runtime.step(() => {
      weight.setGrad(runtime.tensor([5, 6], [2]));
      throw new Error("on purpose");
    }),
  ).rejects.toThrow("on purpose");
  expect(weight.grad).toBeUndefined();
});

test("the gradient carries the marks that are given, or those of grad()", async () => {
  const runtime = cpuRuntime();
  const weight = runtime.variable([1, 2], [2], { requiresGrad: true });
  await runtime.step(() => {
    weight.setGrad(runtime.tensor([3, 4], [2]));
    expect([...weight.gradientMarks]).toEqual([]);
    weight.setGrad(runtime.tensor([3, 4], [2]), new Set([mark]));
    expect([...weight.gradientMarks]).toEqual([mark]);
    const [gradient] = grad(weight.square().sum(), [weight]);
    weight.setGrad(gradient);
    expect([...weight.gradientMarks]).toEqual(["plain"]);
  });
});

test("setGrad refuses another shape and what is no tensor", () => {
  const runtime = cpuRuntime();
  const weight = runtime.variable([1, 2], [2]);
  expect(() => weight.setGrad(runtime.tensor([1, 2, 3], [3]))).toThrow(ShapeError);
  expect(() => weight.setGrad(runtime.tensor([1, 2], [1, 2]))).toThrow(
    "setGrad: the tensor has shape [2], the gradient has [1,2]",
  );
  expect(() => weight.setGrad([1, 2] as never)).toThrow("setGrad");
});
