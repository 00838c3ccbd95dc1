// Inputs of other sizes than the example's: files compute what the model does, or are refused.
import { AdaptiveAvgPool2d, Module, Upsample } from "@halfstep/nn";
import { noGrad, type Tensor } from "@halfstep/tensor";
import * as ops from "@halfstep/tensor/functional";
import { describe, expect, test } from "vitest";
import { fromOnnx, type OnnxOptions, toOnnx } from "../src/index.js";
import { runtime, waves } from "./cases.js";
import { runOnnx } from "./session.js";

/** A function of a tensor as a model. */
class Computed extends Module {
  readonly compute: (x: Tensor) => Tensor;

  constructor(compute: (x: Tensor) => Tensor) {
    super();
    this.compute = compute;
  }

  forward(x: Tensor): Tensor {
    return this.compute(x);
  }
}

const sizes = { input: { 0: "batch", 1: "height", 2: "width" } };
const shapes = [
  [2, 12, 16, 3],
  [1, 9, 13, 3],
  [2, 5, 5, 3],
];
const written = (model: Module, options: OnnxOptions = { axes: sizes }): Promise<Uint8Array> =>
  toOnnx(model, [runtime.zeros([2, 12, 16, 3])], options);
const refused = (compute: (x: Tensor) => Tensor): Promise<void> =>
  expect(written(new Computed(compute))).rejects.toThrow(
    /changes with the size of an axis|fix these by the option axes|changes$/,
  );

/** How the results of the file differ from the model's, in ONNX Runtime and here; "" where they do not. */
async function difference(model: Module, bytes: Uint8Array, shape: readonly number[]) {
  const input = waves(shape);
  const wanted = noGrad(() => model.forward(input as never)) as Tensor;
  const values = await wanted.toArray();
  const { output: theirs } = await runOnnx(bytes, { input });
  const { output: own } = fromOnnx(runtime, bytes).forward({ input });
  const errorOf = (found: ArrayLike<number>): number =>
    Math.max(...Array.from(values, (value, i) => Math.abs(value - (found[i] as number))));
  const errors = [errorOf(theirs?.values ?? []), errorOf((await own?.toArray()) ?? [])];
  const isSame = `${wanted.shape}` === `${theirs?.dims}` && `${wanted.shape}` === `${own?.shape}`;
  return isSame && errors.every((error) => error < 1e-5)
    ? ""
    : `[${shape}] gives [${wanted.shape}], there [${theirs?.dims}], here [${own?.shape}], off by ${errors}`;
}

describe.each([
  { scale: 2 },
  { scale: 1.5 },
  { scale: 1.4 },
  { scale: 0.5 },
  { scale: 0.4 },
  { scale: 1 / 3 },
  { size: [24, 32] as const },
  { size: [5, 7] as const },
  { size: [24, 7] as const },
])("images are resampled to %o", (to) => {
  test.each([
    { mode: "nearest" as const },
    { mode: "nearest-exact" as const },
    { mode: "bilinear" as const, alignCorners: false },
    { mode: "bilinear" as const, alignCorners: true },
    { mode: "bicubic" as const, alignCorners: false },
    { mode: "bicubic" as const, alignCorners: true },
  ])("by %o", async (mode) => {
    const model = new Upsample({ ...to, ...mode });
    const fixed = await written(model, { axes: {} });
    const open = await written(model);
    const found = [await difference(model, fixed, [2, 12, 16, 3])];
    for (const shape of shapes) found.push(await difference(model, open, shape));
    expect(found.filter((each) => each !== "")).toEqual([]);
  });
});

test("images that are resampled twice", async () => {
  const once = (x: Tensor): Tensor => ops.upsampleBilinear2d(x, { scale: 1.5 });
  const twice = new Computed((x) => once(once(x)));
  const beside = new Computed((x) => ops.upsampleNearest2d(once(x), { scale: 2 }));
  for (const model of [twice, beside])
    for (const shape of shapes)
      expect(await difference(model, await written(model), shape)).toBe("");
});

test("a pool over the whole image is one for images of all sizes", async () => {
  const mean = new AdaptiveAvgPool2d(1);
  const largest = new Computed((x) =>
    ops.maxPool2d(x, { window: [x.shape[1] as number, x.shape[2] as number] }),
  );
  for (const model of [mean, largest])
    for (const shape of shapes)
      expect(await difference(model, await written(model), shape)).toBe("");
});

test("numbers that change with the size of an axis are refused", async () => {
  const height = (x: Tensor): number => x.shape[1] as number;
  await refused((x) => ops.avgPool2d(x, { window: [height(x), 2] }));
  await refused((x) => ops.maxPool2d(x, { window: 2, stride: [height(x), 1] }));
  await refused((x) => ops.maxPool2d(x, { window: 31, stride: 1, padding: height(x) }));
  await refused((x) => ops.layerNorm(x, [3], undefined, undefined, { eps: 1 / height(x) }));
  await refused((x) =>
    ops.pad(
      x,
      [
        [0, 0],
        [0, 0],
        [0, 0],
        [0, 2],
      ],
      height(x),
    ),
  );
  await refused((x) => ops.flip(x.narrow(1, 0, 2), height(x) % 2 === 0 ? 1 : 2));
  await refused((x) => ops.sum(x, height(x) % 2 === 0 ? 1 : 2));
  await refused((x) => x.narrow(1, 0, Math.floor(height(x) / 11)));
});

test("padding up to a size is refused where the axis changes", async () => {
  await refused((x) =>
    ops.pad(x, [
      [0, 0],
      [0, 20 - (x.shape[1] as number)],
      [0, 0],
      [0, 0],
    ]),
  );
});

test("a norm takes the dimensions that it has in every trace", async () => {
  // The last two of [batch, 5, length, 4] have 20 elements in the example, as 5 and 4 together.
  const model = new Computed((x) => ops.layerNorm(x, [x.shape[2] as number, 4]));
  const bytes = await toOnnx(model, [runtime.zeros([2, 5, 5, 4])], {
    axes: { input: { 0: "batch", 2: "length" } },
  });
  expect(await difference(model, bytes, [2, 5, 5, 4])).toBe("");
  expect(await difference(model, bytes, [2, 5, 7, 4])).toBe("");
});
