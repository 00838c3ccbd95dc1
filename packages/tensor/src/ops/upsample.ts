import * as kernels from "@halfstep/kernels";
import * as kinds from "../arguments/kinds.js";
import * as ownKinds from "../arguments/own-kinds.js";
import { type Composite, composite } from "../dispatch/composite.js";
import { defineOp, type Op, type Operand, type TensorSpec } from "../dispatch/op.js";
import { ShapeError } from "../errors.js";
import type { Tensor } from "../tensor/tensor.js";
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
  backward: ({ gradients, attributes }) => [
    resampleBackward.apply([gradients[0] as Tensor], attributes),
  ],
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
  backward: ({ gradients, attributes }) => [resample.apply([gradients[0] as Tensor], attributes)],
});

/** Sizes of an image, outermost first: of length 1 for sequences, 2 for images, 3 for volumes. */
type Sizes = readonly [number] | readonly [number, number] | readonly [number, number, number];

interface Resized<S extends Sizes> {
  /** Sizes of the result, outermost first; or `scale`. */
  readonly size?: S;
  /** All sizes times this, rounded down. */
  readonly scale?: number;
}

/** Height and width of the result as `size`; or `scale`. */
export type UpsampleOptions = Resized<readonly [height: number, width: number]>;

interface Exact {
  /** The nearest of a pixel's middle, as torch's "nearest-exact"; else of its upper left corner. Default false. */
  readonly exact?: boolean;
}

interface Corners {
  /** Keep the corners in place, instead of the outer edges. Default false. */
  readonly alignCorners?: boolean;
}

/** {@link UpsampleOptions}, and which pixel is the nearest. */
export type UpsampleNearestOptions = UpsampleOptions & Exact;
/** {@link UpsampleOptions}, and what stays in place. */
export type UpsampleBilinearOptions = UpsampleOptions & Corners;
/** The length of the result as `size`; or `scale`. */
export type Upsample1dOptions = Resized<readonly [length: number]>;
/** Depth, height and width of the result as `size`; or `scale`. */
export type Upsample3dOptions = Resized<readonly [depth: number, height: number, width: number]>;

const layouts = ["length", "height, width", "depth, height, width"];

function resampleImage(
  op: string,
  x: Tensor,
  { size, scale = 1 }: Resized<Sizes>,
  rank: 1 | 2 | 3,
  mode: kernels.ResampleMode,
): Tensor {
  if (x.rank !== rank + 2)
    throw new ShapeError(
      `${op} needs an input [batch, ${layouts[rank - 1]}, channels], not [${x.shape}]`,
    );
  const before = x.shape.slice(1, -1);
  const sizes = size ?? before.map((length) => Math.floor(length * scale));
  if (sizes.length !== rank || !sizes.every((length) => Number.isInteger(length) && length > 0))
    throw new ShapeError(`${op}: [${sizes}] is no ${layouts[rank - 1]} of a result`);
  const axes = sizes.map((newSize, d) => ({ axis: d + 1, size: before[d] as number, newSize }));
  // What becomes shorter first: less to do for the others.
  axes.sort((a, b) => a.newSize / a.size - b.newSize / b.size);
  return axes.reduce(
    (image, axis) =>
      axis.size === axis.newSize ? image : resample.apply([image], { ...axis, mode }),
    x,
  );
}

const resizing = (more: kinds.ParameterKinds): kinds.ParameterKinds => ({
  x: kinds.tensor,
  options: ownKinds.required(kinds.optionals({ size: kinds.list, scale: kinds.number, ...more })),
});

const nearest = <O extends Resized<Sizes>>(
  name: string,
  rank: 1 | 2 | 3,
): Composite<(x: Tensor, options: O & Exact) => Tensor> =>
  composite(
    { name, castPolicy: "float32", parameters: resizing({ exact: kinds.flag }) },
    (x: Tensor, options: O & Exact): Tensor =>
      resampleImage(name, x, options, rank, options.exact ? "nearestExact" : "nearest"),
  );

const smooth = <O extends Resized<Sizes>>(
  name: string,
  rank: 1 | 2 | 3,
  mode: "linear" | "cubic",
): Composite<(x: Tensor, options: O & Corners) => Tensor> =>
  composite(
    { name, castPolicy: "float32", parameters: resizing({ alignCorners: kinds.flag }) },
    (x: Tensor, options: O & Corners): Tensor => {
      const by: kernels.ResampleMode = options.alignCorners ? `${mode}Corners` : mode;
      return inFloat32(x, (image) => resampleImage(name, image, options, rank, by));
    },
  );

type Upsampling<O> = Composite<(x: Tensor, options: O) => Tensor>;

/** A sequence [batch, length, channels] of another length, each place that of the nearest. */
export const upsampleNearest1d: Upsampling<Upsample1dOptions & Exact> = nearest(
  "upsampleNearest1d",
  1,
);

/** An image [batch, height, width, channels] of another size, each pixel that of the nearest place above and left. */
export const upsampleNearest2d: Upsampling<UpsampleNearestOptions> = nearest(
  "upsampleNearest2d",
  2,
);

/** A volume [batch, depth, height, width, channels] of another size, each place that of the nearest. */
export const upsampleNearest3d: Upsampling<Upsample3dOptions & Exact> = nearest(
  "upsampleNearest3d",
  3,
);

/** A sequence [batch, length, channels] of another length, each place between the two around it. */
export const upsampleLinear1d: Upsampling<Upsample1dOptions & Corners> = smooth(
  "upsampleLinear1d",
  1,
  "linear",
);

/** An image [batch, height, width, channels] of another size, each pixel between the four around its place. */
export const upsampleBilinear2d: Upsampling<UpsampleBilinearOptions> = smooth(
  "upsampleBilinear2d",
  2,
  "linear",
);

/** An image [batch, height, width, channels] of another size, by cubics through the sixteen pixels around each place. */
export const upsampleBicubic2d: Upsampling<UpsampleBilinearOptions> = smooth(
  "upsampleBicubic2d",
  2,
  "cubic",
);

/** A volume [batch, depth, height, width, channels] of another size, each place between the eight around it. */
export const upsampleTrilinear3d: Upsampling<Upsample3dOptions & Corners> = smooth(
  "upsampleTrilinear3d",
  3,
  "linear",
);
