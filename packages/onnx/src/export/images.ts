import { type Conv2dAttributes, conv2dOutputSize } from "@halfstep/kernels";
import type { AvgPoolOptions, Conv2dOptions } from "@halfstep/tensor";
import type { Resample } from "@halfstep/tensor/internals";
import { dataType } from "../data-type.js";
import type { Emission } from "./emission.js";
import type { Attributes } from "./graph-builder.js";
import type { Size } from "./size.js";
import { plain } from "./values.js";

/** Images [batch, height, width, channels] as operators take them: [batch, channels, height, width]. */
const channelsFirst = [0, 3, 1, 2];
/** Weights [height, width, in, out] as operators take them: [out, in, height, width]. */
const filters = [3, 2, 0, 1];

const pair = (value: number | readonly [number, number]): readonly [number, number] =>
  typeof value === "number" ? [value, value] : value;

/** A convolution. */
export function emitConv2d(emission: Emission): void {
  const {
    stride = 1,
    padding = 0,
    dilation = 1,
    groups = 1,
  } = emission.attributes<Conv2dOptions>();
  const weight = emission.input(1).shape;
  const [top, left] = pair(padding);
  const image = emission.take(0, { order: channelsFirst });
  const output = emission.node("Conv", [image, emission.take(1, { order: filters })], {
    kernel_shape: weight.slice(0, 2).map(({ factor }) => factor),
    strides: pair(stride),
    pads: [top, left, top, left],
    dilations: pair(dilation),
    group: groups,
  });
  emission.result(output, { order: channelsFirst });
}

/** A pool, by its operator. */
export const emitPool =
  (operator: "MaxPool" | "AveragePool") =>
  (emission: Emission): void => {
    const attributes = emission.attributes<AvgPoolOptions>();
    const { window, stride = window, padding = 0, ceilMode = false } = attributes;
    const { countIncludePad = true } = attributes;
    const [top, left] = pair(padding);
    const output = emission.node(operator, [emission.take(0, { order: channelsFirst })], {
      kernel_shape: pair(window),
      strides: pair(stride),
      pads: [top, left, top, left],
      ...(operator === "AveragePool" && { count_include_pad: Number(countIncludePad) }),
      ...(ceilMode && { ceil_mode: 1 }),
    });
    emission.result(output, { order: channelsFirst });
  };

/** A transposed convolution, which the trace has as the gradient of a convolution by its input. */
export function emitConvTranspose2d(emission: Emission): void {
  const attributes = emission.attributes<Conv2dAttributes>();
  const { stride, padding, dilation, kernelHeight, kernelWidth, groups = 1 } = attributes;
  const [top, left] = padding;
  const kernel = [kernelHeight, kernelWidth];
  const given = conv2dOutputSize(attributes);
  // What the result has beyond the size that follows from the windows.
  const added = [attributes.height, attributes.width].map((size, d) => {
    const covered = (stride[d] as number) * ((given[d] as number) - 1) + 1;
    const window = (dilation[d] as number) * ((kernel[d] as number) - 1);
    return size - (covered + window - 2 * (padding[d] as number));
  });
  const image = emission.take(0, { order: channelsFirst });
  const output = emission.node("ConvTranspose", [image, emission.take(1, { order: filters })], {
    kernel_shape: kernel,
    strides: stride,
    pads: [top, left, top, left],
    output_padding: added,
    dilations: dilation,
    group: groups,
  });
  emission.result(output, { order: channelsFirst });
}

/** How Resize says what a mode of resampling is. */
const resizing: Readonly<Record<Resample["mode"], Attributes>> = {
  nearest: {
    ...{ mode: "nearest", nearest_mode: "floor" },
    coordinate_transformation_mode: "asymmetric",
  },
  nearestExact: {
    ...{ mode: "nearest", nearest_mode: "round_prefer_ceil" },
    coordinate_transformation_mode: "half_pixel",
  },
  linear: { mode: "linear", coordinate_transformation_mode: "half_pixel" },
  linearCorners: { mode: "linear", coordinate_transformation_mode: "align_corners" },
  cubic: { mode: "cubic", coordinate_transformation_mode: "half_pixel" },
  cubicCorners: { mode: "cubic", coordinate_transformation_mode: "align_corners" },
};

/** Resamples one axis. Its new size is a multiple of the old one, or computed when the graph runs. */
export function emitResample(emission: Emission): void {
  const { axis, mode } = emission.attributes<Resample>();
  const shape = emission.shapeOf();
  const order = [0, shape.length - 1, ...plain(shape.length).slice(1, -1)];
  const factors = new Set(
    emission.op.attributes.map((each) => (each as Resample).newSize / (each as Resample).size),
  );
  const [factor = 1] = factors;
  const isMultiple = factors.size === 1 && Number.isInteger(factor);
  const scales = order.map((d) => (d === axis ? factor : 1));
  const x = emission.take(0, { order });
  const output = emission.node(
    "Resize",
    isMultiple
      ? [x, undefined, emission.builder.constant(dataType.FLOAT, scales)]
      : [x, undefined, undefined, emission.sizes(order.map((d) => shape[d] as Size))],
    resizing[mode],
  );
  emission.result(output, { type: emission.input(0).type, order });
}
