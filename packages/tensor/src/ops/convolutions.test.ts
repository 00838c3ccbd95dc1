import { autocast } from "@halfstep/autocast";
import { expect, test } from "vitest";
import { cpuRuntime, ShapeError } from "../index.js";
import { conv1d, conv2d, convTranspose1d, convTranspose2d } from "./index.js";

// test/torch-layers.test.ts compares values and gradients with torch's.

test("a transposed convolution has the size of what it was the convolution of", () => {
  const runtime = cpuRuntime();
  const x = runtime.zeros([1, 9, 8, 2]);
  const options = { stride: [3, 2], padding: [1, 0], dilation: 2 } as const;
  const y = conv2d(x, runtime.zeros([2, 3, 2, 5]), undefined, options);
  const back = convTranspose2d(y, runtime.zeros([2, 3, 2, 5]), undefined, {
    ...options,
    outputPadding: [2, 1],
  });
  expect(y.shape).toEqual([1, 3, 2, 5]);
  expect(back.shape).toEqual(x.shape);
});

test("autocast casts input, weight and bias", () => {
  const runtime = cpuRuntime();
  const [sequence, image] = [runtime.zeros([1, 4, 2]), runtime.zeros([1, 4, 4, 2])];
  const [line, window, bias] = [
    runtime.zeros([3, 2, 2]),
    runtime.zeros([3, 3, 2, 2]),
    runtime.zeros([2]),
  ];
  const run = () => [
    conv1d(sequence, line, bias).dtype,
    convTranspose1d(sequence, line, bias).dtype,
    convTranspose2d(image, window, bias).dtype,
  ];
  expect(run()).toEqual(["float32", "float32", "float32"]);
  expect(autocast({ dtype: "bfloat16" }, run)).toEqual(["bfloat16", "bfloat16", "bfloat16"]);
});

test("what does not fit is refused", () => {
  const runtime = cpuRuntime();
  const zeros = (...shape: number[]) => runtime.zeros(shape);
  const image = zeros(1, 4, 4, 4);
  const refused: readonly [() => unknown, typeof ShapeError | typeof RangeError, string][] = [
    [
      () => conv2d(image, zeros(2, 2, 4, 6), undefined, { groups: 2 }),
      ShapeError,
      "conv2d: the input has 4 channels, the weight takes 4 in each of 2 groups",
    ],
    [
      () => conv2d(image, zeros(2, 2, 2, 5), undefined, { groups: 2 }),
      ShapeError,
      "conv2d: 5 output channels cannot be divided into 2 groups",
    ],
    [() => conv2d(image, image, undefined, { groups: 0 }), RangeError, "groups 0 must be a whole"],
    [
      () => conv1d(image, zeros(2, 4, 4)),
      ShapeError,
      "conv1d needs an input [batch, length, channels] and a weight [length, …, …], not [1,4,4,4] and [2,4,4]",
    ],
    [
      () => convTranspose2d(image, zeros(2, 2, 3, 5)),
      ShapeError,
      "convTranspose2d: the input has 4 channels, the weight takes 5",
    ],
    [() => convTranspose2d(zeros(4, 4), image), ShapeError, "convTranspose2d needs an input"],
    [
      () => convTranspose2d(image, zeros(2, 2, 1, 4), undefined, { groups: 3 }),
      ShapeError,
      "convTranspose2d: 4 input channels cannot be divided into 3 groups",
    ],
    [
      () => convTranspose2d(image, zeros(2, 2, 1, 4), undefined, { stride: 2, outputPadding: 2 }),
      RangeError,
      "convTranspose2d: outputPadding [2,2] must be whole, at least 0, and less than the stride [2,2] or the dilation [1,1]",
    ],
    [
      () => convTranspose1d(zeros(1, 2, 4), zeros(2, 1, 4), undefined, { outputPadding: 1 }),
      RangeError,
      "convTranspose1d: outputPadding 1 must be whole, at least 0, and less than the stride 1 or the dilation 1",
    ],
    [
      () => convTranspose1d(zeros(1, 1, 4), zeros(2, 1, 4), undefined, { padding: 1 }),
      ShapeError,
      "convTranspose1d: padding 1 leaves nothing of the result of 1 by a window 2",
    ],
  ];
  for (const [call, type, message] of refused) {
    expect(call).toThrow(type);
    expect(call).toThrow(message);
  }
});
