import * as kernels from "@halfstep/kernels";
import { checked } from "../arguments/arguments.js";
import * as kinds from "../arguments/kinds.js";
import { defineOp, type Op, type Operand, type TensorSpec } from "../dispatch/op.js";
import { ShapeError } from "../errors.js";
import type { Tensor } from "../tensor/tensor.js";
import { floating } from "./floating.js";
import { pad } from "./windows.js";

type Two = readonly [number, number];

/** The windows that {@link unfold} copies and {@link fold} adds up; a pair is height and width. */
export interface UnfoldOptions {
  /** Size of a window. */
  readonly window: number | Two;
  /** Default 1. */
  readonly stride?: number | Two;
  /** Default 0. */
  readonly padding?: number | Two;
  /** Distance of neighbours within a window. Default 1. */
  readonly dilation?: number | Two;
}

const members = {
  window: kinds.pair,
  stride: kinds.optional(kinds.pair),
  padding: kinds.optional(kinds.pair),
  dilation: kinds.optional(kinds.pair),
};

const pair = (value: number | Two): Two => (typeof value === "number" ? [value, value] : value);

/** Windows into images [batch, height, width, channels]. */
interface Windows {
  readonly image: readonly [batch: number, height: number, width: number, channels: number];
  readonly window: Two;
  readonly stride: Two;
  readonly dilation: Two;
}

function windowsOf(op: string, image: readonly number[], options: UnfoldOptions): Windows {
  const { window, stride = 1, dilation = 1 } = options;
  const windows: Windows = {
    image: image as Windows["image"],
    window: pair(window),
    stride: pair(stride),
    dilation: pair(dilation),
  };
  const sizes = [windows.window, windows.stride, windows.dilation].flat();
  if (sizes.some((size) => size < 1) || placesOf(windows).some((count) => count < 1))
    throw new ShapeError(
      `${op}: windows [${windows.window}] do not fit into [${image}] with its padding`,
    );
  return windows;
}

/** Places of the windows along height and width. */
const placesOf = ({ image: [, height, width], window, stride, dilation }: Windows): Two => {
  const along = (size: number, d: 0 | 1): number =>
    Math.floor((size - dilation[d] * (window[d] - 1) - 1) / stride[d]) + 1;
  return [along(height, 0), along(width, 1)];
};

const unfoldOp: Op<Windows> = defineOp<Windows>({
  name: "unfold",
  castPolicy: "none",
  shape([x], windows) {
    const { image, window } = windows;
    const [rows, columns] = placesOf(windows);
    return [
      {
        shape: [image[0], rows * columns, window[0] * window[1] * image[3]],
        dtype: (x as TensorSpec).dtype,
      },
    ];
  },
  forward({ target, inputs, outputs, attributes }) {
    const [input, out] = [inputs[0] as Operand, outputs[0] as Operand];
    const { image, window, stride, dilation } = attributes;
    const [batch, height, width, channels] = image;
    const [rows, columns] = placesOf(attributes);
    const line = width * channels;
    target.launch(
      kernels.stridedCopy(
        { input, out },
        {
          dimensions: [
            { size: batch, stride: height * line },
            { size: rows, stride: stride[0] * line },
            { size: columns, stride: stride[1] * channels },
            { size: window[0], stride: dilation[0] * line },
            { size: window[1], stride: dilation[1] * channels },
            { size: channels, stride: 1 },
          ],
        },
      ),
    );
  },
  backward: ({ gradients, attributes }) => [foldOp.apply([gradients[0] as Tensor], attributes)],
});

const foldOp: Op<Windows> = defineOp<Windows>({
  name: "fold",
  castPolicy: "none",
  shape: ([x], { image }) => [{ shape: image, dtype: floating("fold", x as TensorSpec).dtype }],
  forward({ target, inputs, outputs, attributes }) {
    const [input, out] = [inputs[0] as Operand, outputs[0] as Operand];
    target.launch(kernels.fold({ input, out }, { ...attributes, places: placesOf(attributes) }));
  },
  backward: ({ gradients, attributes }) => [unfoldOp.apply([gradients[0] as Tensor], attributes)],
});

/**
 * The windows of an input [batch, height, width, channels] as rows [batch, windows, window height · window width · channels]: what a convolution
 * multiplies by its weight. Torch has the same numbers with channels first.
 */
export const unfold: (x: Tensor, options: UnfoldOptions) => Tensor = checked(
  "unfold",
  { x: kinds.tensor, options: kinds.options(members) },
  (x: Tensor, options: UnfoldOptions): Tensor => {
    if (x.rank !== 4)
      throw new ShapeError(
        `unfold needs an input [batch, height, width, channels], not [${x.shape}]`,
      );
    const [down, right] = pair(options.padding ?? 0);
    const isPadded = down > 0 || right > 0;
    const image = isPadded
      ? pad(x, [
          [0, 0],
          [down, down],
          [right, right],
          [0, 0],
        ])
      : x;
    return unfoldOp.apply([image], windowsOf("unfold", image.shape, options));
  },
);

/**
 * The sum of windows [batch, windows, window height · window width · channels] in an image of `size`, [batch, height, width, channels]: the
 * gradient of {@link unfold}.
 */
export const fold: (x: Tensor, size: Two, options: UnfoldOptions) => Tensor = checked(
  "fold",
  { x: kinds.tensor, size: kinds.pair, options: kinds.options(members) },
  (x: Tensor, [height, width]: Two, options: UnfoldOptions): Tensor => {
    const [down, right] = pair(options.padding ?? 0);
    const [rows, columns] = pair(options.window);
    const channels = (x.shape[2] ?? 0) / (rows * columns);
    const image = [x.shape[0] ?? 0, height + 2 * down, width + 2 * right, channels];
    const windows = windowsOf("fold", image, options);
    const [placesDown, placesRight] = placesOf(windows);
    if (x.rank !== 3 || !Number.isInteger(channels) || x.shape[1] !== placesDown * placesRight)
      throw new ShapeError(
        `fold: [${x.shape}] is no [batch, ${placesDown * placesRight}, ${rows} · ${columns} · channels]`,
      );
    const sum = foldOp.apply([x], windows);
    return pad(sum, [
      [0, 0],
      [-down, -down],
      [-right, -right],
      [0, 0],
    ]);
  },
);
