import { cpuRuntime, ShapeError } from "@halfstep/tensor";
import { expect, test } from "vitest";
import { UNet } from "./index.js";

test("it has as many parameters as torch counts in milesial's", () => {
  expect(UNet.parameterCount()).toBe(31_037_698);
  expect(UNet.parameterCount({ bilinear: true })).toBe(17_263_042);
});

test.each([{ width: 2 }, { width: 4, bilinear: true, channels: 1, classes: 5 }])(
  "the parameters that are counted are those that are made: %o",
  (options) => {
    const model = new UNet(cpuRuntime(), { seed: 1, ...options });
    const made = [...model.parameters()].reduce((sum, { size }) => sum + size, 0);
    expect(UNet.parameterCount(options)).toBe(made);
  },
);

test.each([
  [16, 16],
  [17, 31],
  [40, 18],
])("a score for every pixel of images of %i×%i", (height, width) => {
  const runtime = cpuRuntime();
  const model = new UNet(runtime, { seed: 1, width: 2 });
  const scores = model.forward(runtime.zeros([2, height, width, 3]));
  expect(scores.shape).toEqual([2, height, width, 2]);
});

test("images that nothing would be left of are refused", () => {
  const runtime = cpuRuntime();
  const model = new UNet(runtime, { seed: 1, width: 2 });
  expect(() => model.forward(runtime.zeros([2, 15, 32, 3]))).toThrow(ShapeError);
  expect(() => model.forward(runtime.zeros([32, 32, 3]))).toThrow("at least 16×16");
});
