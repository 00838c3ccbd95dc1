import { expect, test } from "vitest";
import { ampPrimitives, cpuRuntime, flatten, type Tensor } from "../index.js";

// The tests of optimizers include the primitives' contract; these tests cover recorded steps.

test("a loss is scaled in float32 by the scale on the device, and its gradient with it", async () => {
  const runtime = cpuRuntime();
  const primitives = ampPrimitives(runtime);
  const state = primitives.allocate(8);
  const lossFlag = primitives.allocate(1);
  primitives.writeState(state, [1024, 1 / 1024, 0, 0, 0, 0, 0, 0]);
  const w = runtime.variable([3], [1], { requiresGrad: true, dtype: "float16" });
  const step = () =>
    runtime.step(() => {
      const scaled = primitives.scaleLoss(w.mul(w).sum(), state, { weight: 1, lossFlag });
      scaled.backward();
      return scaled;
    });
  const scaled = await step();
  expect([scaled.dtype, await scaled.item(), await w.grad?.item()]).toEqual([
    "float32",
    9 * 1024,
    6 * 1024,
  ]);
  // The backward pass begins at the scale: no launch multiplies a one by it.
  const names = runtime.lastPlan?.launches.map(({ launch, isBackward }) =>
    isBackward ? launch.kernel.name : "",
  );
  expect(names?.filter(Boolean)).toHaveLength(1);
  // Another scale is other data, not another plan.
  const plan = runtime.lastPlan;
  w.zeroGrad();
  primitives.writeState(state, [2, 0.5, 0, 0, 0, 0, 0, 0]);
  await step();
  expect([await w.grad?.item(), runtime.lastPlan]).toEqual([12, plan]);
});

test("found_inf guards an assignment in the same step", async () => {
  const runtime = cpuRuntime();
  const primitives = ampPrimitives(runtime);
  const foundInf = primitives.allocate(1);
  const flag = runtime.variableAt({ storage: foundInf, offset: 0 }, [1], "float32", "foundInf");
  const w = runtime.variable([1], [1], { requiresGrad: true });
  const step = (factor: number): Promise<void> =>
    runtime.step(() => {
      w.mul(factor).sum().backward();
      const { storage: buffer, offset, size: length } = w.grad ?? w;
      primitives.check([{ buffer, offset, length, dtype: "float32" }], foundInf);
      w.assign(w.add(1), { unless: flag });
      w.zeroGrad();
    });
  await step(2);
  expect(await w.item()).toBe(2);
  await step(Number.POSITIVE_INFINITY);
  expect([await w.item(), (await flag.toArray())[0] !== 0]).toEqual([2, true]);
});

test("an optimizer made of ops leaves everything to the flag that the scaler hands it", async () => {
  const runtime = cpuRuntime();
  const primitives = ampPrimitives(runtime);
  const foundInf = primitives.allocate(1);
  const w = runtime.variable([1], [1], { requiresGrad: true });
  const { gradients } = flatten([w]);
  const step = (factor: number): Promise<void> =>
    runtime.step(() => {
      w.mul(factor).sum().backward();
      primitives.check([{ buffer: gradients, dtype: "float32" }], foundInf);
      w.assign(w.add(1), { unless: foundInf });
      w.zeroGrad();
    });
  await step(2);
  expect(await w.item()).toBe(2);
  await step(Number.NaN);
  expect(await w.item()).toBe(2);
});

test("a loss is weighted before it is scaled, and flagged where it is not finite itself", async () => {
  const runtime = cpuRuntime();
  const primitives = ampPrimitives(runtime);
  const state = primitives.allocate(8);
  const lossFlag = primitives.allocate(1);
  primitives.writeState(state, [2 ** 16, 2 ** -16, 0, 0, 0, 0, 0, 0]);
  const found: [number, number][] = [];
  for (const value of [3, 65504, Number.POSITIVE_INFINITY, Number.NaN]) {
    const w = runtime.variable([value], [1], { requiresGrad: true, dtype: "float16" });
    const scaled = await runtime.step(() =>
      primitives.scaleLoss(w.sum(), state, { weight: 0.25, lossFlag }),
    );
    found.push([await scaled.item(), (await primitives.read(lossFlag))[0] as number]);
  }
  expect(() =>
    primitives.scaleLoss(3 as unknown as Tensor, state, { weight: 1, lossFlag }),
  ).toThrow("the loss to scale is 3, not a tensor: ");
  expect(found).toEqual([
    [3 * 2 ** 14, 0],
    [65504 * 2 ** 14, 0],
    [Number.POSITIVE_INFINITY, 1],
    [Number.NaN, 1],
  ]);
});

test("the primitives of tensors belong to a runtime, not to a device", () => {
  for (const wrong of [{ capabilities: {}, gpu: {} }, cpuRuntime().target, undefined])
    expect(() => ampPrimitives(wrong as never)).toThrow("ampPrimitives(runtime): runtime ");
});
