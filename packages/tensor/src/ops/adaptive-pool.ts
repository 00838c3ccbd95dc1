import { withoutAutocast } from "@halfstep/autocast";
import { checked } from "../arguments/arguments.js";
import * as kinds from "../arguments/kinds.js";
import { ShapeError } from "../errors.js";
import type { Tensor } from "../tensor/tensor.js";
import { matmul } from "./matmul.js";
import { avgPool2d } from "./pool.js";
import { inFloat32 } from "./precision.js";
import { unsqueeze } from "./shape.js";

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
    const [batch, height, width, channels] = x.shape as [number, number, number, number];
    if (x.rank !== 4 || height < 1 || width < 1 || sizes.some((s) => s < 1))
      throw new ShapeError(
        `adaptiveAvgPool2d: an input [batch, height, width, channels] of shape [${x.shape}] has no ${sizes.join("×")} windows`,
      );
    const [rows, columns] = sizes;
    if (height % rows === 0 && width % columns === 0)
      return avgPool2d(x, { window: [height / rows, width / columns] });
    return inFloat32(x, (pixels) =>
      withoutAutocast(() => {
        const lines = pixels.reshape([batch, height, width * channels]);
        const pooled = matmul(means(x, height, rows), lines).reshape([
          batch * rows,
          width,
          channels,
        ]);
        return matmul(means(x, width, columns), pooled).reshape([batch, rows, columns, channels]);
      }),
    );
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

/** The matrix [windows, size] whose product with a column is the mean of each window. */
function means({ runtime }: Tensor, size: number, windows: number): Tensor {
  const matrix = new Float32Array(windows * size);
  for (let w = 0; w < windows; w++) {
    const [start, end] = [Math.floor((w * size) / windows), Math.ceil(((w + 1) * size) / windows)];
    matrix.fill(1 / (end - start), w * size + start, w * size + end);
  }
  return runtime.tensor(matrix, [windows, size]);
}
