import * as kernels from "@halfstep/kernels";
import { type Composite, composite } from "../composite.js";
import { ShapeError } from "../errors.js";
import { defineOp, type Op, type Operand, type TensorSpec } from "../op.js";
import type { Tensor } from "../tensor.js";
import { floating } from "./floating.js";
import { inFloat32 } from "./precision.js";

interface Resample {
  readonly axis: number;
  readonly mode: kernels.ResampleMode;
  /** Sizes of the axis before and after. */
  readonly size: number;
  readonly newSize: number;
}

const linesOf = (shape: readonly number[], { axis, ...rest }: Resample) => ({
  outer: shape.slice(0, axis).reduce((a, b) => a * b, 1),
  inner: shape.slice(axis + 1).reduce((a, b) => a * b, 1),
  ...rest,
});

const resized = ({ shape, dtype }: TensorSpec, axis: number, size: number): TensorSpec => ({
  shape: shape.with(axis, size),
  dtype,
});

/** One axis of an image, longer or shorter. */
const resample: Op<Resample> = defineOp<Resample>({
  name: "resample",
  castPolicy: "none",
  shape: ([x], { axis, newSize }) => [
    resized(floating("resample", x as TensorSpec), axis, newSize),
  ],
  forward({ target, inputs, outputs, attributes }) {
    const [input, out] = [inputs[0] as Operand, outputs[0] as Operand];
    target.launch(kernels.resample({ input, out }, linesOf(input.shape, attributes)));
  },
  backward: ({ gradients, attributes }) => [resampleBackward([gradients[0] as Tensor], attributes)],
});

const resampleBackward: Op<Resample> = defineOp<Resample>({
  name: "resampleBackward",
  castPolicy: "none",
  shape: ([g], { axis, size }) => [resized(g as TensorSpec, axis, size)],
  forward({ target, inputs, outputs, attributes }) {
    const [outGradient, inputGradient] = [inputs[0] as Operand, outputs[0] as Operand];
    target.launch(
      kernels.resampleBackward(
        { outGradient, inputGradient },
        linesOf(outGradient.shape, attributes),
      ),
    );
  },
  backward: ({ gradients, attributes }) => [resample([gradients[0] as Tensor], attributes)],
});

export interface UpsampleOptions {
  /** Height and width of the result; or `scale`. */
  readonly size?: readonly [height: number, width: number];
  /** Both sizes times this, rounded down. */
  readonly scale?: number;
}

export interface UpsampleBilinearOptions extends UpsampleOptions {
  /** Keep the corners in place, instead of the outer edges. Default false. */
  readonly alignCorners?: boolean;
}

function resampleImage(
  op: string,
  x: Tensor,
  { size, scale = 1 }: UpsampleOptions,
  mode: kernels.ResampleMode,
): Tensor {
  const [, height, width] = x.shape as [number, number, number, number];
  if (x.rank !== 4)
    throw new ShapeError(`${op} needs an input [batch, height, width, channels], not [${x.shape}]`);
  const sizes = size ?? [Math.floor(height * scale), Math.floor(width * scale)];
  if (!sizes.every((length) => Number.isInteger(length) && length > 0))
    throw new ShapeError(`${op}: [${sizes}] is no height and width of an image`);
  // The shorter axis first: less to do for the second.
  const order = sizes[0] / height <= sizes[1] / width ? ([1, 2] as const) : ([2, 1] as const);
  return order.reduce((image, axis) => {
    const [before, after] = [image.shape[axis] as number, sizes[axis - 1] as number];
    return before === after
      ? image
      : resample([image], { axis, mode, size: before, newSize: after });
  }, x);
}

/** An image [batch, height, width, channels] of another size, each pixel that of the nearest place above and left. */
export const upsampleNearest2d: Composite<(x: Tensor, options: UpsampleOptions) => Tensor> =
  composite(
    { name: "upsampleNearest2d", castPolicy: "float32" },
    (x: Tensor, options: UpsampleOptions): Tensor =>
      resampleImage("upsampleNearest2d", x, options, "nearest"),
  );

/** An image [batch, height, width, channels] of another size, each pixel between the four around its place. */
export const upsampleBilinear2d: Composite<
  (x: Tensor, options: UpsampleBilinearOptions) => Tensor
> = composite(
  { name: "upsampleBilinear2d", castPolicy: "float32" },
  (x: Tensor, { alignCorners = false, ...options }: UpsampleBilinearOptions): Tensor =>
    inFloat32(x, (image) =>
      resampleImage(
        "upsampleBilinear2d",
        image,
        options,
        alignCorners ? "linearCorners" : "linear",
      ),
    ),
);
