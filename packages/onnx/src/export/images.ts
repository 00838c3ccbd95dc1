import { type Conv2dAttributes, conv2dOutputSize } from "@halfstep/kernels";
import type { AvgPoolOptions, Conv2dOptions } from "@halfstep/tensor";
import type { Emission } from "./emission.js";

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
    kernel_shape: weight.slice(0, 2).map((size) => emission.constant(size)),
    strides: pair(stride),
    pads: [top, left, top, left],
    dilations: pair(dilation),
    group: groups,
  });
  emission.result(output, { order: channelsFirst });
}

/** Whether one window is the whole image, in every trace. */
const isGlobal = (emission: Emission): boolean =>
  emission.everyAttributes<AvgPoolOptions>().every(({ window, padding = 0 }, t) => {
    const image = emission.shapesOf(0)[t]?.slice(1, 3);
    return `${pair(window)}` === `${image}` && pair(padding).every((each) => each === 0);
  });

/** A pool, by its operator. */
export const emitPool =
  (operator: "MaxPool" | "AveragePool") =>
  (emission: Emission): void => {
    if (isGlobal(emission)) {
      const image = emission.take(0, { order: channelsFirst });
      emission.result(emission.node(`Global${operator}`, [image]), { order: channelsFirst });
      return;
    }
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
  const {
    stride,
    padding,
    dilation,
    kernelHeight,
    kernelWidth,
    groups = 1,
  } = emission.attributes<Conv2dAttributes>("batch", "height", "width");
  const [top, left] = padding;
  const kernel = [kernelHeight, kernelWidth];
  // What the result has beyond the size that follows from the windows.
  const addedTo = (attributes: Conv2dAttributes, d: 0 | 1): number => {
    const size = d === 0 ? attributes.height : attributes.width;
    const covered = stride[d] * (conv2dOutputSize(attributes)[d] - 1) + 1;
    const window = dilation[d] * ((kernel[d] as number) - 1);
    return size - (covered + window - 2 * padding[d]);
  };
  const added = ([0, 1] as const).map((d) =>
    emission.constant(emission.size<Conv2dAttributes>((each) => addedTo(each, d))),
  );
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
