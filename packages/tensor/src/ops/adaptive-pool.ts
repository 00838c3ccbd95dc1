import { checked } from "../arguments/arguments.js";
import * as kinds from "../arguments/kinds.js";
import { ShapeError } from "../errors.js";
import type { Tensor } from "../tensor/tensor.js";
import { keepWhere } from "./comparison.js";
import { indexSelect } from "./indexing.js";
import { avgPool2d } from "./pool.js";
import { inFloat32 } from "./precision.js";
import { unsqueeze } from "./shape.js";
import { sum } from "./sums.js";

/**
 * Means of windows that divide an input [batch, height, width, channels] into `size` parts along height and width, as in torch: windows
 * overlap by one where a size is no multiple.
 */
export const adaptiveAvgPool2d: (
  x: Tensor,
  size: number | readonly [height: number, width: number],
) => Tensor = checked(
  "adaptiveAvgPool2d",
  { x: kinds.tensor, size: kinds.pair },
  (x: Tensor, size: number | readonly [number, number]): Tensor => {
    const sizes = typeof size === "number" ? ([size, size] as const) : size;
    const [, height, width] = x.shape as [number, number, number, number];
    if (x.rank !== 4 || height < 1 || width < 1 || sizes.some((s) => s < 1))
      throw new ShapeError(
        `adaptiveAvgPool2d: an input [batch, height, width, channels] of shape [${x.shape}] has no ${sizes.join("×")} windows`,
      );
    const [rows, columns] = sizes;
    if (height % rows === 0 && width % columns === 0)
      return avgPool2d(x, { window: [height / rows, width / columns] });
    return inFloat32(x, (pixels) => means(means(pixels, 1, rows), 2, columns));
  },
);

/** {@link adaptiveAvgPool2d} of an input [batch, length, channels]. */
export const adaptiveAvgPool1d: (x: Tensor, size: number) => Tensor = checked(
  "adaptiveAvgPool1d",
  { x: kinds.tensor, size: kinds.integer },
  (x: Tensor, size: number): Tensor => {
    const y = adaptiveAvgPool2d(unsqueeze(x, 1), [1, size]);
    return y.reshape(y.shape.toSpliced(1, 1));
  },
);

/**
 * The mean of each window of an axis: the sum of its places, which are copied in windows of one size. What a shorter window does not have is cut
 * before it is added, so that infinities and NaN stay in their windows.
 */
function means(x: Tensor, axis: 1 | 2, windows: number): Tensor {
  const { runtime, shape } = x;
  const size = shape[axis] as number;
  if (windows === size) return x;
  const bounds = Array.from({ length: windows }, (_, w): [start: number, end: number] => [
    Math.floor((w * size) / windows),
    Math.ceil(((w + 1) * size) / windows),
  ]);
  const longest = Math.max(...bounds.map(([start, end]) => end - start));
  const places = bounds.flatMap(([start]) =>
    Array.from({ length: longest }, (_, k) => Math.min(start + k, size - 1)),
  );
  const isIn = bounds.flatMap(([start, end]) =>
    Array.from({ length: longest }, (_, k) => Number(start + k < end)),
  );
  const behind = shape.slice(axis + 1);
  const ones = behind.map(() => 1);
  const mask = runtime.tensor(Uint32Array.from(isIn), [windows, longest, ...ones]);
  const copied = indexSelect(x, axis, runtime.tensor(Uint32Array.from(places)));
  const apart = copied.reshape([...shape.slice(0, axis), windows, longest, ...behind]);
  const sums = sum(keepWhere(apart, mask), axis + 1);
  const shares = bounds.map(([start, end]) => 1 / (end - start));
  return sums.mul(runtime.tensor(shares, [windows, ...ones]));
}
