import type { Conv2dAttributes } from "../src/conv2d.js";

/** Convolutions by windows of 3×3, one pixel at a time, with a border of one zero. */
export const windows = (
  [batch, height, width]: readonly [number, number, number],
  [inChannels, outChannels]: readonly [number, number],
  more: Partial<Conv2dAttributes> = {},
): Conv2dAttributes => ({
  batch,
  height,
  width,
  inChannels,
  outChannels,
  kernelHeight: 3,
  kernelWidth: 3,
  stride: [1, 1],
  padding: [1, 1],
  dilation: [1, 1],
  ...more,
});
