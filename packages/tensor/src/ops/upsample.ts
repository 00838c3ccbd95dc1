import * as kernels from "@halfstep/kernels";
import * as kinds from "../arguments/kinds.js";
import * as ownKinds from "../arguments/own-kinds.js";
import { type Composite, composite } from "../dispatch/composite.js";
import { defineOp, type Op, type Operand, type TensorSpec } from "../dispatch/op.js";
import { ArgumentError, ShapeError } from "../errors.js";
import type { Tensor } from "../tensor/tensor.js";
import { floating } from "./floating.js";
import { inFloat32 } from "./precision.js";

/** The attributes of the op that resamples an axis. */
export interface Resample {
  readonly axis: number;
  readonly mode: kernels.ResampleMode;
  /** Sizes of the axis before and after. */
  readonly size: number;
  readonly newSize: number;
  /** New places for an old one as a fraction, where it is another than that of the sizes. */
  readonly ratio?: readonly [number, number] | undefined;
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

/** Resamples one axis of an image to another length. */
export const resample: Op<Resample> = defineOp<Resample>({
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
  /**
   * All sizes times this, rounded down. Where that is no whole number, the places are those of this scale, not of the rounded sizes, as in
   * torch.
   */
  readonly scale?: number;
}

/** Height and width of the result as `size`; or `scale`. */
export type UpsampleOptions = Resized<readonly [height: number, width: number]>;

interface Exact {
  /**
   * Take the pixel nearest to the middle of the new pixel, as torch's "nearest-exact", instead of to its upper left
   * corner. Default false.
   */
  readonly exact?: boolean;
}

interface Corners {
  /** Align the centres of the corner pixels instead of their outer edges. Default false. */
  readonly alignCorners?: boolean;
}

/** {@link UpsampleOptions}, and the choice of the nearest pixel. */
export type UpsampleNearestOptions = UpsampleOptions & Exact;
/** {@link UpsampleOptions}, and the alignment of corners. */
export type UpsampleBilinearOptions = UpsampleOptions & Corners;
/** The length of the result as `size`; or `scale`. */
export type Upsample1dOptions = Resized<readonly [length: number]>;
/** Depth, height and width of the result as `size`; or `scale`. */
export type Upsample3dOptions = Resized<readonly [depth: number, height: number, width: number]>;

const layouts = ["length", "height, width", "depth, height, width"];

function resampleImage(
  op: string,
  x: Tensor,
  { size, scale: factor }: Resized<Sizes>,
  rank: 1 | 2 | 3,
  mode: kernels.ResampleMode,
): Tensor {
  if (x.rank !== rank + 2)
    throw new ShapeError(
      `${op} needs an input [batch, ${layouts[rank - 1]}, channels], not [${x.shape}]`,
    );
  const before = x.shape.slice(1, -1);
  if (!size === (factor === undefined))
    throw new ArgumentError(`${op}: pass either the size of the result, or a scale`);
  const scale = factor ?? 1;
  const sizes = size ?? before.map((length) => Math.floor(length * scale));
  if (sizes.length !== rank || !sizes.every((length) => Number.isInteger(length) && length > 0))
    throw new ShapeError(`${op}: [${sizes}] is no ${layouts[rank - 1]} of a result`);
  const axes = sizes.map((newSize, d) => {
    const length = before[d] as number;
    const isRounded = !size && newSize !== length * scale;
    return { axis: d + 1, size: length, newSize, ratio: isRounded ? fractionOf(scale) : undefined };
  });
  // Axes that become shorter come first: the others then have fewer elements.
  axes.sort((a, b) => a.newSize / a.size - b.newSize / b.size);
  return axes.reduce(
    (image, axis) =>
      axis.size === axis.newSize && !axis.ratio
        ? image
        : resample.apply([image], { ...axis, mode }),
    x,
  );
}

/** Larger denominators would be more exact than a float32, and kernels multiply them by places in 32 bits. */
const largestDenominator = 4096;

/** A positive number as a fraction of whole numbers, the last of its continued fraction that float32 tells from others. */
function fractionOf(scale: number): [numerator: number, denominator: number] {
  if (scale < 1) return fractionOf(1 / scale).reverse() as [number, number];
  let [before, last]: [[number, number], [number, number]] = [
    [1, 0],
    [Math.floor(scale), 1],
  ];
  for (let rest = scale % 1; rest > 2 ** -23; ) {
    const whole = Math.floor(1 / rest);
    const next: [number, number] = [whole * last[0] + before[0], whole * last[1] + before[1]];
    if (next[1] > largestDenominator) break;
    [before, last] = [last, next];
    rest = 1 / rest - whole;
  }
  return last;
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

/** Resizes a sequence [batch, length, channels]; each place takes the nearest one. */
export const upsampleNearest1d: Upsampling<Upsample1dOptions & Exact> = nearest(
  "upsampleNearest1d",
  1,
);

/** Resizes an image [batch, height, width, channels]; each pixel takes the nearest one above and left. */
export const upsampleNearest2d: Upsampling<UpsampleNearestOptions> = nearest(
  "upsampleNearest2d",
  2,
);

/** Resizes a volume [batch, depth, height, width, channels]; each place takes the nearest one. */
export const upsampleNearest3d: Upsampling<Upsample3dOptions & Exact> = nearest(
  "upsampleNearest3d",
  3,
);

/** Resizes a sequence [batch, length, channels] by linear interpolation. */
export const upsampleLinear1d: Upsampling<Upsample1dOptions & Corners> = smooth(
  "upsampleLinear1d",
  1,
  "linear",
);

/** Resizes an image [batch, height, width, channels] by bilinear interpolation. */
export const upsampleBilinear2d: Upsampling<UpsampleBilinearOptions> = smooth(
  "upsampleBilinear2d",
  2,
  "linear",
);

/** Resizes an image [batch, height, width, channels] by bicubic interpolation of sixteen pixels. */
export const upsampleBicubic2d: Upsampling<UpsampleBilinearOptions> = smooth(
  "upsampleBicubic2d",
  2,
  "cubic",
);

/** Resizes a volume [batch, depth, height, width, channels] by trilinear interpolation. */
export const upsampleTrilinear3d: Upsampling<Upsample3dOptions & Corners> = smooth(
  "upsampleTrilinear3d",
  3,
  "linear",
);
