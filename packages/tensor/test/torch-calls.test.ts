import { DTypeError } from "@halfstep/autocast";
import { requestTestDevice } from "@halfstep/device/testing";
import { describe, expect, test } from "vitest";
import * as f from "../src/functional.js";
import { cpuRuntime, gpuRuntime, type Runtime, type Tensor } from "../src/index.js";

// What a user of torch writes first: values as torch 1.13.1 gives them, or an error that names the function and the argument.

const runtimes: readonly [string, () => Promise<Runtime>][] = [
  ["CPU", async () => cpuRuntime()],
  ["GPU", async () => gpuRuntime(await requestTestDevice())],
];

const listed = async (x: Tensor): Promise<readonly [readonly number[], number[]]> => [
  x.shape,
  [...(await x.toArray())],
];

/** A matrix of 1 to 6. */
const matrix = (runtime: Runtime): Tensor => runtime.tensor([1, 2, 3, 4, 5, 6], [2, 3]);

describe.each(runtimes)("%s", (_, open) => {
  test("no elements have the neutral element of a reduction", async () => {
    const runtime = await open();
    const nothing = runtime.zeros([2, 0]);
    expect(await listed(f.any(nothing))).toEqual([[], [0]]);
    expect(await listed(f.all(nothing))).toEqual([[], [1]]);
    expect(await listed(f.any(nothing, 1))).toEqual([[2], [0, 0]]);
    expect(await listed(f.all(nothing, 1, { keepDimensions: true }))).toEqual([
      [2, 1],
      [1, 1],
    ]);
    const least = Number.NEGATIVE_INFINITY;
    expect(await listed(f.logsumexp(nothing, { axes: 1 }))).toEqual([[2], [least, least]]);
    expect(await listed(f.logsumexp(nothing, { axes: 0 }))).toEqual([[0], []]);
    expect(() => f.amax(nothing, 1)).toThrow("amax: [2,0] has no elements over its axes [1]");
    expect(await listed(f.amax(nothing, 0))).toEqual([[0], []]);
  });

  test("norms of no rows have gradients: none, and zeros of the weights", async () => {
    const runtime = await open();
    const weight = runtime.variable([1, 2, 3], [3], { requiresGrad: true });
    const x = runtime.variable([], [0, 3], { requiresGrad: true });
    const images = runtime.variable([], [0, 4, 5, 3], { requiresGrad: true });
    f.backward(f.sum(f.layerNorm(x, [3], weight).square()));
    f.backward(f.sum(f.instanceNorm(images, weight).square()));
    expect(await listed(weight.grad as Tensor)).toEqual([[3], [0, 0, 0]]);
    expect([x.grad?.shape, images.grad?.shape]).toEqual([
      [0, 3],
      [0, 4, 5, 3],
    ]);
  });

  test("a scalar is a line of one element", async () => {
    const runtime = await open();
    const x = runtime.tensor(3);
    for (const reduced of [f.sum(x, 0), f.mean(x, -1), f.amax(x, [0]), f.flip(x, 0)])
      expect(await listed(reduced)).toEqual([[], [3]]);
    expect(await f.logsumexp(x, { axes: 0 }).item()).toBeCloseTo(3, 6);
    expect(() => f.sum(x, 1)).toThrow("sum: axis 1 is none of the dimensions of [1]");
    expect(() => f.flip(x, 1)).toThrow("flip: axis 1 is none of the dimensions of [1]");
  });

  test("where takes numbers, which have the dtype of the other operand", async () => {
    const runtime = await open();
    const x = runtime.variable([1, -2, 3], [3], { requiresGrad: true });
    const positive = x.gt(0);
    const kept = f.where(positive, x.mul(2), -1);
    expect(await listed(kept)).toEqual([[3], [2, -1, 6]]);
    f.backward(kept.sum());
    expect(await listed(x.grad as Tensor)).toEqual([[3], [2, 0, 2]]);
    expect(await listed(x.where(positive, 0))).toEqual([[3], [1, 0, 3]]);
    expect(await listed(f.where(positive, 1, 0))).toEqual([[3], [1, 0, 1]]);
    const half = f.where(positive, 70_000, x.to("float16"));
    expect([half.dtype, await listed(half)]).toEqual(["float16", [[3], [Infinity, -2, Infinity]]]);
    const whole = f.where(positive, runtime.tensor(Int32Array.of(1, 2, 3)), -4);
    expect([whole.dtype, await listed(whole)]).toEqual(["int32", [[3], [1, -4, 3]]]);
    expect(() => f.where(positive, whole, 0.5)).toThrow("where: 0.5 is no int32");
  });

  test("calls with torch's arguments", async () => {
    const runtime = await open();
    const x = matrix(runtime);
    expect(f.squeeze(x.reshape([1, 2, 1, 3])).shape).toEqual([2, 3]);
    expect(await listed(f.narrow(x, 1, -2, 2))).toEqual([
      [2, 2],
      [2, 3, 5, 6],
    ]);
    expect(f.expand(x, [4, -1, -1]).shape).toEqual([4, 2, 3]);
    expect(await listed(f.permute(x, [-1, 0]))).toEqual([
      [3, 2],
      [1, 4, 2, 5, 3, 6],
    ]);
    expect(await listed(f.roll(x, 2))).toEqual([
      [2, 3],
      [5, 6, 1, 2, 3, 4],
    ]);
    expect(await listed(f.roll(x, [1, -1], [0, 1]))).toEqual([
      [2, 3],
      [5, 6, 4, 2, 3, 1],
    ]);
  });
});

test("arguments that torch refuses are refused by name, and change nothing silently", () => {
  const runtime = cpuRuntime();
  const generator = new f.Generator(1);
  const x = matrix(runtime);
  const image = runtime.zeros([1, 3, 3, 2]);
  const integers = runtime.tensor(Int32Array.of(1, 4));
  const volume = runtime.zeros([1, 2, 4, 4, 3]);
  const refused: readonly [() => unknown, string][] = [
    [() => f.unsqueeze(x, 5), "unsqueeze: [2,3] has no place 5 for a dimension"],
    [() => f.unsqueeze(x, -4), "unsqueeze: [2,3] has no place -4 for a dimension"],
    [() => f.expand(x, [-1, 2, 3]), "expand: [2,3] does not expand to [-1,2,3]"],
    [() => f.permute(x, [-1, 1]), "permute: [1,1] is no order"],
    [() => f.roll(x, [1, 2], 0), "roll: shifts [1,2] and axes [0] are not as many"],
    [() => f.narrow(x, 1, -4, 2), "narrow: 2 places from -4 on do not lie within axis 1 of [2,3]"],
    [() => f.index(x, [5]), "select: axis 0 of [2,3] has no index 5"],
    [() => f.repeat(x, [-1, 2]), "repeat: counts are 0 or more, not [-1,2]"],
    [() => f.randperm(runtime, -1, { generator }), "randperm: there are no -1 numbers"],
    [() => f.linspace(runtime, 0, 1, -1), "linspace: there are no -1 numbers"],
    [() => f.eye(runtime, -1), "eye: there is no matrix of -1 rows and -1 columns"],
    [
      () => f.multinomial(x, 4, { generator }),
      "multinomial: 4 of the classes of [2,3] cannot be drawn without replacement",
    ],
    [
      () => f.conv3d(volume, runtime.zeros([3, 3, 3, 3, 4])),
      "conv3d: a kernel of depth 3 does not fit into [1,2,4,4,3] with padding [0,0,0]",
    ],
    [
      () => f.indexPut(x, integers, runtime.zeros([3, 3])),
      "indexPut: values [3,3] do not broadcast to [2,3], the places that the indices name in [2,3]",
    ],
    [() => f.upsampleBicubic2d(image, {}), "upsampleBicubic2d: pass either the size of the result"],
    [
      () => f.upsampleNearest2d(image, { size: [6, 6], scale: 2 }),
      "upsampleNearest2d: pass either the size of the result",
    ],
    [() => runtime.tensor(BigInt64Array.of(1n) as never), "pass Int32Array.from(data, Number)"],
  ];
  for (const [call, message] of refused) expect(call).toThrow(message);
  expect(() => f.lerp(integers, integers, 0.5)).toThrow(DTypeError);
});
