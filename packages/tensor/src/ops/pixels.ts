import { withoutAutocast } from "@halfstep/autocast";
import { checked } from "../arguments/arguments.js";
import * as kinds from "../arguments/kinds.js";
import { ShapeError } from "../errors.js";
import type { Tensor } from "../tensor/tensor.js";
import { groupNorm, type NormOptions } from "./norms.js";

const parameters = { x: kinds.tensor, factor: kinds.integer };

function requirePixels(op: string, { shape }: Tensor, factor: number, isWhole: boolean): void {
  if (shape.length !== 4 || factor < 1 || !isWhole)
    throw new ShapeError(
      `${op}: an input [batch, height, width, channels] of shape [${shape}] has no groups of ${factor}×${factor}`,
    );
}

/** [batch, height, width, channels · r²] as [batch, height · r, width · r, channels]. Channels are in torch's order. */
export const pixelShuffle: (x: Tensor, factor: number) => Tensor = checked(
  "pixelShuffle",
  parameters,
  (x: Tensor, factor: number): Tensor => {
    const [batch, height, width, all] = x.shape as [number, number, number, number];
    const channels = all / factor ** 2;
    requirePixels("pixelShuffle", x, factor, Number.isInteger(channels));
    return x
      .reshape([batch, height, width, channels, factor, factor])
      .permute([0, 1, 4, 2, 5, 3])
      .reshape([batch, height * factor, width * factor, channels]);
  },
);

/** The inverse of {@link pixelShuffle}. */
export const pixelUnshuffle: (x: Tensor, factor: number) => Tensor = checked(
  "pixelUnshuffle",
  parameters,
  (x: Tensor, factor: number): Tensor => {
    const [batch, height, width, channels] = x.shape as [number, number, number, number];
    const [rows, columns] = [height / factor, width / factor];
    requirePixels("pixelUnshuffle", x, factor, Number.isInteger(rows) && Number.isInteger(columns));
    return x
      .reshape([batch, rows, factor, columns, factor, channels])
      .permute([0, 1, 3, 5, 2, 4])
      .reshape([batch, rows, columns, channels * factor ** 2]);
  },
);

/**
 * Normalises each channel of each sample of an input [batch, ..., channels] over its pixels, with float32 statistics, in the dtype of the
 * input: torch's policies do not name it.
 */
export const instanceNorm: (
  x: Tensor,
  weight?: Tensor,
  bias?: Tensor,
  options?: NormOptions,
) => Tensor = checked(
  "instanceNorm",
  {
    x: kinds.tensor,
    weight: kinds.optional(kinds.tensor),
    bias: kinds.optional(kinds.tensor),
    options: kinds.optionals({ eps: kinds.number }),
  },
  (x: Tensor, weight?: Tensor, bias?: Tensor, options: NormOptions = {}): Tensor =>
    withoutAutocast(() => groupNorm(x, x.shape.at(-1) ?? 0, weight, bias, options)),
);
