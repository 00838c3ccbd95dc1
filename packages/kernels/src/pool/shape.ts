import type { Binding } from "@halfstep/device";
import { requirePair } from "../attributes.js";
import { requireLength } from "../operands.js";

/** A window that slides over an NHWC image: [batch, height, width, channels]. */
export interface PoolAttributes {
  readonly batch: number;
  readonly height: number;
  readonly width: number;
  readonly channels: number;
  /** [height, width] of the window. */
  readonly window: readonly [number, number];
  readonly stride: readonly [number, number];
  /** Rows above and below, columns left and right: at most half of the window. */
  readonly padding: readonly [number, number];
  /** Windows that reach past the padding count as well, if they begin before it on the right, as torch's `ceil_mode`. Default false. */
  readonly ceilMode?: boolean;
  /** Means divide by the padding that a window covers, too. Default true. */
  readonly countIncludePad?: boolean;
}

/**
 * [height, width] of the result: ⌊(size + 2·padding - window) / stride⌋ + 1, or with `ceilMode` ⌈…⌉ + 1, less one where the last window would
 * begin in the padding on the right.
 *
 * @throws TypeError without one of the pairs of numbers. RangeError where they fit no window.
 */
export function poolOutputSize({
  height,
  width,
  window,
  stride,
  padding,
  ceilMode = false,
}: Pick<PoolAttributes, "height" | "width" | "window" | "stride" | "padding" | "ceilMode">): [
  number,
  number,
] {
  requirePair("pooling", "window", window);
  requirePair("pooling", "stride", stride);
  requirePair("pooling", "padding", padding);
  const size = (length: number, d: 0 | 1): number => {
    if (window[d] < 1 || stride[d] < 1 || padding[d] < 0 || padding[d] * 2 > window[d])
      throw new RangeError(
        `pooling with window [${window}], stride [${stride}] and padding [${padding}]: window and stride must be at least 1, padding at most half the window`,
      );
    const span = length + 2 * padding[d] - window[d];
    const windows = (ceilMode ? Math.ceil : Math.floor)(span / stride[d]) + 1;
    if (windows < 1)
      throw new RangeError(
        `pooling: a window of [${window}] does not fit into ${height}x${width} with padding [${padding}]`,
      );
    const startsInPadding = ceilMode && (windows - 1) * stride[d] >= length + padding[d];
    return startsInPadding ? windows - 1 : windows;
  };
  return [size(height, 0), size(width, 1)];
}

/** Checks the operands of a pooling launch and gives its scalars. */
export function poolScalars<B>(
  op: string,
  inputs: Readonly<Record<string, Binding<B>>>,
  outputs: Readonly<Record<string, Binding<B>>>,
  attributes: PoolAttributes,
): Record<string, number> {
  const { batch, height, width, channels, window, stride, padding } = attributes;
  const [outHeight, outWidth] = poolOutputSize(attributes);
  requireLength(op, inputs, batch * height * width * channels);
  requireLength(op, outputs, batch * outHeight * outWidth * channels);
  return {
    batch,
    height,
    width,
    channels,
    outHeight,
    outWidth,
    windowHeight: window[0],
    windowWidth: window[1],
    strideHeight: stride[0],
    strideWidth: stride[1],
    paddingHeight: padding[0],
    paddingWidth: padding[1],
  };
}

export type PoolScalars = Readonly<Record<(typeof poolScalarNames)[number], number>>;

export const poolScalarNames = [
  "batch",
  "height",
  "width",
  "channels",
  "outHeight",
  "outWidth",
  "windowHeight",
  "windowWidth",
  "strideHeight",
  "strideWidth",
  "paddingHeight",
  "paddingWidth",
] as const;
