import { DTypeError } from "@halfstep/autocast";
import { expect, test } from "vitest";
import { places } from "../../test/forward-check.js";
import { cpuRuntime, ShapeError, type Tensor } from "../index.js";
import * as ops from "./index.js";

const { NaN: nan, POSITIVE_INFINITY: infinity } = Number;
/** Kernels compute in float32, whatever the storage: one of them on the GPU. */
const some = places.filter(([place, dtype]) => place === "CPU" || dtype === "float16");

const valuesOf = async (x: Tensor): Promise<number[]> => [...(await x.toArray())];

test.each(some)(
  "comparisons give masks, also of NaN and integers: %s, %s",
  async (_, dtype, open) => {
    const runtime = await open();
    const x = runtime.tensor([1, nan, infinity, -2, -0], [5], { dtype });
    const y = runtime.tensor([1, nan, infinity, 3, 0], [5], { dtype });
    const masks = [x.eq(y), x.ne(y), x.lt(y), x.ge(y), x.gt(0), x.ne(1)];
    expect(masks.map((mask) => mask.dtype)).toEqual(masks.map(() => "uint32"));
    expect(await Promise.all(masks.map(valuesOf))).toEqual([
      [1, 0, 1, 0, 1],
      [0, 1, 0, 1, 0],
      [0, 0, 0, 1, 0],
      [1, 0, 1, 0, 1],
      [1, 0, 1, 0, 0],
      [0, 1, 1, 1, 1],
    ]);
    const labels = runtime.tensor(Uint32Array.of(3, 70_000, 2));
    expect(await valuesOf(labels.eq(runtime.tensor(Uint32Array.of(3, 70_001, 2))))).toEqual([
      1, 0, 1,
    ]);
    const tests = [x.isNan(), x.isInf(), x.isFinite(), x.gt(0).logicalNot(), x.logicalAnd(x.lt(0))];
    expect(await Promise.all(tests.map(valuesOf))).toEqual([
      [0, 1, 0, 0, 0],
      [0, 0, 1, 0, 0],
      [1, 0, 0, 1, 1],
      [0, 1, 0, 1, 1],
      [0, 0, 0, 1, 0],
    ]);
  },
);

test.each(some)("masks choose, whatever is not chosen: %s, %s", async (_, dtype, open) => {
  const runtime = await open();
  const x = runtime.tensor([nan, 2, infinity], [3], { dtype, requiresGrad: true });
  const mask = runtime.tensor(Uint32Array.of(0, 1, 0));
  const y = x.where(mask, runtime.full([], 5, { dtype }));
  expect(await valuesOf(y)).toEqual([5, 2, 5]);
  const finite = y.detach();
  expect(await valuesOf(finite.maskedFill(mask, -infinity))).toEqual([5, -infinity, 5]);
  expect(await valuesOf(finite.maskedFill(mask, 7))).toEqual([5, 7, 5]);
  y.mul(3).sum().backward();
  expect(await valuesOf(x.grad as Tensor)).toEqual([0, 3, 0]);
});

test("a mask's -1e9 stays finite in every dtype, and an infinity is meant", async () => {
  const runtime = cpuRuntime();
  const filled = async (dtype: Tensor["dtype"], value: number): Promise<number> => {
    const x = runtime.zeros([1], { dtype });
    return (await valuesOf(x.maskedFill(runtime.tensor(Uint32Array.of(1)), value)))[0] as number;
  };
  expect(await filled("float16", -1e9)).toBe(-65504);
  expect(await filled("float16", 1e9)).toBe(65504);
  expect(await filled("bfloat16", -1e39)).toBe(-3.3895313892515355e38);
  expect(await filled("float32", -1e9)).toBe(-1e9);
  expect(await filled("float16", -infinity)).toBe(-infinity);
  expect(await filled("float16", nan)).toBeNaN();
});

test("a masked softmax of float16 scores has no NaN, though all of a row is masked", async () => {
  const runtime = cpuRuntime();
  const scores = runtime.tensor([1, 2, 3, 4], [2, 2], { dtype: "float16" });
  const mask = runtime.tensor(Uint32Array.of(0, 1, 1, 1), [2, 2]);
  expect(await valuesOf(scores.maskedFill(mask, -1e9).softmax())).toEqual([1, 0, 0.5, 0.5]);
});

test("operands that do not fit are refused by name", () => {
  const runtime = cpuRuntime();
  const x = runtime.zeros([2]);
  expect(() => x.eq(runtime.zeros([3]))).toThrow(ShapeError);
  expect(() => runtime.tensor(Uint32Array.of(1)).eq(x)).toThrow(DTypeError);
  expect(() => ops.where(x, runtime.tensor(Uint32Array.of(1)), x)).toThrow(
    "where: operands are uint32 and float32; cast one with to()",
  );
});
