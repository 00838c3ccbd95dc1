import * as kinds from "../arguments/kinds.js";
import { type Composite, composite } from "../dispatch/composite.js";
import { ShapeError } from "../errors.js";
import type { Tensor } from "../tensor/tensor.js";
import { conv2d } from "./conv2d.js";
import { unfold } from "./unfold.js";
import { pad } from "./windows.js";

type Three = readonly [depth: number, height: number, width: number];

/** Options of {@link conv3d}; three numbers are those of depth, height and width. */
export interface Conv3dOptions {
  /** Default 1. */
  readonly stride?: number | Three;
  /** Default 0. */
  readonly padding?: number | Three;
  /** Default 1. */
  readonly dilation?: number | Three;
  /** Default 1. */
  readonly groups?: number;
}

const triple = (value: number | Three): Three =>
  typeof value === "number" ? [value, value, value] : value;

const sizes = kinds.either(kinds.integer, {
  what: "three of them",
  accepts: (value) => kinds.integers.accepts(value) && (value as readonly number[]).length === 3,
});

/**
 * Convolution of an input [batch, depth, height, width, in] with a weight [kernelDepth, kernelHeight, kernelWidth, in / groups, out], plus a
 * bias [out]. The slices that a kernel reaches in depth become channels of one convolution of images, so that sums are rounded once.
 */
export const conv3d: Composite<
  (input: Tensor, weight: Tensor, bias?: Tensor, options?: Conv3dOptions) => Tensor
> = composite(
  {
    name: "conv3d",
    castPolicy: "lowerPrecision",
    parameters: {
      input: kinds.tensor,
      weight: kinds.tensor,
      bias: kinds.optional(kinds.tensor),
      options: kinds.optionals({
        stride: sizes,
        padding: sizes,
        dilation: sizes,
        groups: kinds.integer,
      }),
    },
  },
  (
    input: Tensor,
    weight: Tensor,
    bias?: Tensor,
    { stride = 1, padding = 0, dilation = 1, groups = 1 }: Conv3dOptions = {},
  ): Tensor => {
    if (
      input.rank !== 5 ||
      weight.rank !== 5 ||
      input.shape[4] !== (weight.shape[3] as number) * groups
    )
      throw new ShapeError(
        `conv3d: an input [batch, depth, height, width, in] and a weight [depth, height, width, in / ${groups}, out] do not have the shapes [${input.shape}] and [${weight.shape}]`,
      );
    const [steps, pads, spread] = [triple(stride), triple(padding), triple(dilation)];
    const [depth, kernelHeight, kernelWidth, width, out] = weight.shape as [
      number,
      number,
      number,
      number,
      number,
    ];
    const slices = pad(input, [
      [0, 0],
      [pads[0], pads[0]],
      ...Array.from({ length: 3 }, () => [0, 0] as const),
    ]);
    const [batch, all, rows, columns, channels] = slices.shape as [
      number,
      number,
      number,
      number,
      number,
    ];
    if (spread[0] * (depth - 1) >= all)
      throw new ShapeError(
        `conv3d: a kernel of depth ${depth} does not fit into [${input.shape}] with padding [${pads}]`,
      );
    const reached = unfold(slices.reshape([batch, all, 1, rows * columns * channels]), {
      window: [depth, 1],
      stride: [steps[0], 1],
      dilation: [spread[0], 1],
    });
    const places = reached.shape[1] as number;
    const images = reached
      .reshape([batch * places, depth, rows, columns, groups, width])
      .permute([0, 2, 3, 4, 1, 5])
      .reshape([batch * places, rows, columns, depth * channels]);
    const kernel = weight
      .permute([1, 2, 0, 3, 4])
      .reshape([kernelHeight, kernelWidth, depth * width, out]);
    const y = conv2d(images, kernel, bias, {
      stride: [steps[1], steps[2]],
      padding: [pads[1], pads[2]],
      dilation: [spread[1], spread[2]],
      groups,
    });
    return y.reshape([batch, places, ...y.shape.slice(1)]);
  },
);
