import type { Binding } from "@halfstep/device";
import { linearMain, linearWorkgroups } from "./kernel.js";
import { requireLengths } from "./operands.js";

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
}

/** [height, width] of the result: ⌊(size + 2·padding - window) / stride⌋ + 1, as torch without `ceil_mode`. */
export function poolOutputSize({
  height,
  width,
  window,
  stride,
  padding,
}: Pick<PoolAttributes, "height" | "width" | "window" | "stride" | "padding">): [number, number] {
  const size = (length: number, d: 0 | 1): number => {
    if (window[d] < 1 || stride[d] < 1 || padding[d] < 0 || padding[d] * 2 > window[d])
      throw new RangeError(
        `pooling with window [${window}], stride [${stride}] and padding [${padding}]: window and stride must be at least 1, padding at most half of the window`,
      );
    const span = length + 2 * padding[d] - window[d];
    if (span < 0)
      throw new RangeError(
        `pooling: a window of [${window}] does not fit into ${height}x${width} with padding [${padding}]`,
      );
    return Math.floor(span / stride[d]) + 1;
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
  const every = (operands: object, length: number): Record<string, number> =>
    Object.fromEntries(Object.keys(operands).map((name) => [name, length]));
  requireLengths(op, inputs, every(inputs, batch * height * width * channels));
  requireLengths(op, outputs, every(outputs, batch * outHeight * outWidth * channels));
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

const poolScalarNames = [
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

export const poolScalarTypes: readonly { readonly name: string; readonly type: "u32" }[] =
  poolScalarNames.map((name) => ({ name, type: "u32" }));

/** Whether an invocation handles a quad of channels of one place, or four elements with a place each. */
export type PoolWalk = "quads" | "gather";

export const poolWalk = ({ channels }: PoolAttributes): PoolWalk =>
  channels % 4 === 0 ? "quads" : "gather";

/** What a walk computes with: the type of a value, and how to read a binding by the value's number. */
export const poolTypes: Record<
  PoolWalk,
  { readonly value: string; readonly index: string; readonly mask: string; readonly load: string }
> = {
  quads: { value: "vec4f", index: "vec4u", mask: "vec4<bool>", load: "load" },
  gather: { value: "f32", index: "u32", mask: "bool", load: "at" },
};

/** WGSL functions for places and windows; `depth()` is the number of values at a place. */
export const poolHead = (walk: PoolWalk): string => `
fn depth() -> u32 { return ${walk === "quads" ? "s.channels / 4u" : "s.channels"}; }
// The cells of an axis that a window covers, [from, to).
fn covered(place: u32, stride: u32, padding: u32, window: u32, size: u32) -> vec2u {
  let start = i32(place * stride) - i32(padding);
  return vec2u(u32(max(start, 0)), u32(min(start + i32(window), i32(size))));
}
// The windows that cover a cell of an axis, [from, to).
fn covering(cell: u32, stride: u32, padding: u32, window: u32, places: u32) -> vec2u {
  let shifted = cell + padding;
  let first = select((shifted - window) / stride + 1u, 0u, shifted < window);
  return vec2u(first, min(shifted / stride + 1u, places));
}
`;

/** Places along a row that one invocation handles: finding where it starts costs as much as handling a few. */
const stripLength = 4;

/** An entry point that runs `statement` for each place (b, row, column) of `height` × `width` and each quad of channels `c`. */
export const poolLoop = (
  height: string,
  width: string,
  statement: string,
): string => `${linearMain()}
  let height = ${height};
  let width = ${width};
  let strips = (width + ${stripLength - 1}u) / ${stripLength}u;
  if (index >= s.batch * height * strips * depth()) { return; }
  let c = index % depth();
  var rest = index / depth();
  let start = rest % strips * ${stripLength}u;
  rest /= strips;
  let row = rest % height;
  let b = rest / height;
  for (var column = start; column < min(start + ${stripLength}u, width); column++) {
    ${statement}
  }
}
`;

/**
 * An entry point that stores `compute(b, row, column, c)` for each place of `out`, whose images have `height` × `width` places.
 */
export function poolMain(walk: PoolWalk, out: string, height: string, width: string): string {
  if (walk === "quads")
    return poolLoop(
      height,
      width,
      `store_${out}(((b * ${height} + row) * ${width} + column) * depth() + c, compute(b, row, column, c));`,
    );
  return `${linearMain()}
  let count = s.batch * ${height} * ${width} * depth();
  if (index * 4u >= count) { return; }
  var v = vec4f(0.0);
  for (var lane = 0u; lane < 4u; lane++) {
    let i = min(index * 4u + lane, count - 1u);
    let place = i / depth();
    let row = place / ${width};
    v[lane] = compute(row / ${height}, row % ${height}, place % ${width}, i % depth());
  }
  store_${out}(index, v);
}
`;
}

/** Workgroups of {@link poolMain}. */
export const poolWorkgroups = (
  walk: PoolWalk,
  { batch, channels }: PoolScalars,
  height: number,
  width: number,
): readonly [number, number, number] =>
  linearWorkgroups(
    walk === "quads"
      ? (batch * height * Math.ceil(width / stripLength) * channels) / 4
      : Math.ceil((batch * height * width * channels) / 4),
  );

/** The cells or places of one axis that belong together, in JavaScript: [from, to). */
export function coveredCells(
  scalars: PoolScalars,
  axis: "Height" | "Width",
  place: number,
): [number, number] {
  const size = axis === "Height" ? scalars.height : scalars.width;
  const start = place * scalars[`stride${axis}`] - scalars[`padding${axis}`];
  return [Math.max(start, 0), Math.min(start + scalars[`window${axis}`], size)];
}
