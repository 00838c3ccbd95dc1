import { autocast, DTypeError } from "@halfstep/autocast";
import { expect, test } from "vitest";
import { places } from "../../test/forward-check.js";
import { cpuRuntime, ShapeError, type Tensor } from "../index.js";
import * as ops from "./index.js";

const valuesOf = async (x: Tensor): Promise<number[]> => [...(await x.toArray())];

// Once on each runtime.
test.each(places.filter(([, dtype]) => dtype === "float32"))(
  "integers move as they are: %s, %s",
  async (_, __, open) => {
    const runtime = await open();
    const big = 2 ** 31 + 1;
    const x = runtime.tensor(Uint32Array.of(1, big, 3, 4, big + 2, 6), [2, 3]);
    const signed = runtime.tensor(Int32Array.of(-1, 2 ** 30 + 1), [2, 1]);
    expect(await valuesOf(x.permute([1, 0]))).toEqual([1, 4, big, big + 2, 3, 6]);
    expect(await valuesOf(signed.expand([2, 2]))).toEqual([-1, -1, 2 ** 30 + 1, 2 ** 30 + 1]);
    expect(await valuesOf(x.slice(1, { start: 1 }))).toEqual([big, 3, big + 2, 6]);
    expect(
      await valuesOf(
        ops.pad(
          signed,
          [
            [1, 0],
            [0, 0],
          ],
          -7,
        ),
      ),
    ).toEqual([-7, -1, 2 ** 30 + 1]);
    expect(await valuesOf(ops.cat([x, x.flip(0)], 1).select(0, 0))).toEqual([
      1,
      big,
      3,
      4,
      big + 2,
      6,
    ]);
    expect(await valuesOf(x.indexSelect(1, runtime.tensor(Uint32Array.of(1, 1))))).toEqual([
      big,
      big,
      big + 2,
      big + 2,
    ]);
  },
);

test.each(places)(
  "indices out of range give NaN and take no gradient: %s, %s",
  async (_, dtype, open) => {
    const runtime = await open();
    const weight = runtime.tensor([1, 2, 3, 4], [2, 2], { dtype, requiresGrad: true });
    const words = runtime.tensor(Uint32Array.of(1, 5, 1));
    const rows = ops.embedding(words, weight);
    expect(await valuesOf(rows)).toEqual([3, 4, Number.NaN, Number.NaN, 3, 4]);
    rows.sum().backward();
    expect(await valuesOf(weight.grad as Tensor)).toEqual([0, 0, 2, 2]);
  },
);

test("the padding word is looked up, and gets no gradient", async () => {
  const runtime = cpuRuntime();
  const weight = runtime.tensor([1, 2, 3, 4, 5, 6], [3, 2], { requiresGrad: true });
  const words = runtime.tensor(Uint32Array.of(0, 2, 0, 1), [2, 2]);
  const rows = ops.embedding(words, weight, { paddingIndex: 0 });
  expect([rows.shape, await valuesOf(rows)]).toEqual([
    [2, 2, 2],
    [1, 2, 5, 6, 1, 2, 3, 4],
  ]);
  rows.square().sum().backward();
  expect(await valuesOf(weight.grad as Tensor)).toEqual([0, 0, 6, 8, 10, 12]);
});

test("an embedding's gradient of many equal words is summed in float32", async () => {
  const runtime = cpuRuntime();
  const weight = runtime.zeros([2, 4], { dtype: "float16", requiresGrad: true });
  const words = runtime.tensor(new Uint32Array(4096).fill(1));
  ops
    .embedding(words, weight)
    .backward({ gradient: runtime.full([4096, 4], 1, { dtype: "float16" }) });
  expect(await valuesOf(weight.grad as Tensor)).toEqual([0, 0, 0, 0, 4096, 4096, 4096, 4096]);
});

test("one hot", async () => {
  const labels = cpuRuntime().tensor(Uint32Array.of(2, 0), [2, 1]);
  const hot = ops.oneHot(labels, 3);
  expect([hot.shape, hot.dtype]).toEqual([[2, 1, 3], "float32"]);
  expect(await valuesOf(hot)).toEqual([0, 0, 1, 1, 0, 0]);
});

test("what does not fit is refused by name", () => {
  const runtime = cpuRuntime();
  const x = runtime.zeros([2, 3]);
  const index = runtime.tensor(Uint32Array.of(0, 1), [2, 1]);
  const messages: readonly [() => Tensor | Tensor[], string][] = [
    [() => x.gather(2, index), "gather: axis 2 is none of the dimensions of [2,3]"],
    [() => x.gather(0, index.reshape([1, 2])).gather(0, x), "gather: indices are float32"],
    [() => x.scatterAdd(1, index, x), "need one shape"],
    [() => x.indexSelect(0, index), "indexSelect needs an index [places]"],
    [() => ops.embedding(index, x, { paddingIndex: 2 }), "paddingIndex 2 is none of the 2 words"],
    [() => x.narrow(1, 2, 2), "2 places from 2 on do not lie within axis 1"],
    [() => x.split([1, 1], 1), "sizes 1,1 do not add up to axis 1"],
    [() => ops.cat([x, runtime.zeros([3, 3])], 1), "differ in more than axis 1"],
    [() => ops.pad(x, [[1, 1]]), "for each of its 2 dimensions, not for 1"],
    [() => x.squeeze(0), "squeeze: axis 0 of [2,3] has size 2, not 1"],
    [() => ops.upsampleNearest2d(x, { scale: 2 }), "[batch, height, width, channels]"],
    [() => ops.dot(x, x), "dot needs two vectors"],
    [() => x.slice(0, { end: 2, step: 0 }), "step 0 is no whole number above 0"],
  ];
  for (const [call, message] of messages) expect(call).toThrow(message);
  expect(() => x.gather(0, x)).toThrow(DTypeError);
  expect(() => x.narrow(1, 2, 2)).toThrow(ShapeError);
});

test("a dtype argument is obeyed inside of regions too", async () => {
  const runtime = cpuRuntime();
  const x = runtime.full([3000], 1, { dtype: "float16" });
  const dtypes = autocast({ dtype: "float16" }, () => [
    x.sum().dtype,
    x.sum(undefined, { dtype: "float16" }).dtype,
    x.cumsum(0).dtype,
    x.cumsum(0, { dtype: "bfloat16" }).dtype,
    x.norm().dtype,
    x.norm({ dtype: "float16" }).dtype,
    x.prod(0, { dtype: "float16" }).dtype,
  ]);
  expect(dtypes.join()).toBe("float32,float16,float32,bfloat16,float32,float16,float16");
  // Computed in float32 and rounded once: 3000 is a float16, 2048 + 1 is not.
  expect(await ops.sum(x, undefined, { dtype: "float16" }).item()).toBe(3000);
});
