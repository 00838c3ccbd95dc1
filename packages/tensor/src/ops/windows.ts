import { DTypeError } from "@halfstep/autocast";
import * as kernels from "@halfstep/kernels";
import { checked } from "../arguments/arguments.js";
import * as kinds from "../arguments/kinds.js";
import type { DifferentiableOp, GradNode, Slice } from "../autograd/grad-node.js";
import {
  defineOp,
  type Op,
  type OpDefinition,
  type Operand,
  type TensorSpec,
} from "../dispatch/op.js";
import { ShapeError } from "../errors.js";
import type { Tensor } from "../tensor/tensor.js";

/** The indices start, start + step, … of one dimension, which may lie outside of it. */
interface Window {
  readonly start: number;
  readonly step: 1 | -1;
  readonly size: number;
}

/** The attributes of `window`. */
export interface Windows {
  readonly places: readonly Window[];
  /** The value outside of the tensor. */
  readonly fill: number;
}

/** Windows into all dimensions at once, of any dtype: slices, padding and flips. The derivative of a window is a window. */
const windowOp: OpDefinition<Windows> & Pick<DifferentiableOp, "slices"> = {
  name: "window",
  castPolicy: "none",
  shape: ([x], { places }) => [
    { shape: places.map(({ size }) => size), dtype: (x as TensorSpec).dtype },
  ],
  forward({ target, inputs, outputs, attributes: { places, fill } }) {
    const input = inputs[0] as Operand;
    const strides = input.shape.map((_, d) => input.shape.slice(d + 1).reduce((a, b) => a * b, 1));
    const offset = places.reduce((at, { start }, d) => at + start * (strides[d] as number), 0);
    const dimensions = places.map(({ start, step, size }, d) => {
      const length = input.shape[d] as number;
      const [from, to] = step === 1 ? [-start, length - start] : [start - length + 1, start + 1];
      return { size, stride: step * (strides[d] as number), from, to };
    });
    target.launch(
      kernels.stridedCopy({ input, out: outputs[0] as Operand }, { dimensions, offset, fill }),
    );
  },
  backward: ({ inputs, gradients, attributes: { places } }) => [
    window.apply([gradients[0] as Tensor], {
      places: places.map(({ start, step }, d) => ({
        start: step === 1 ? -start : start,
        step,
        size: (inputs[0] as Tensor).shape[d] as number,
      })),
      fill: 0,
    }),
  ],
  slices: { takenBy: sliceOf, join: (pieces, axis) => cat(pieces, axis) },
};

export const window: Op<Windows> = defineOp(windowOp);

/** The slice that a window takes; undefined where it does something else. */
function sliceOf({ attributes, inputs }: GradNode): Slice | undefined {
  const [x] = inputs;
  if (!x) return undefined;
  const { places } = attributes as Windows;
  const isWhole = ({ start, step, size }: Window, d: number): boolean =>
    start === 0 && step === 1 && size === x.shape[d];
  const axis = places.findIndex((place, d) => !isWhole(place, d));
  const place = places[axis];
  if (!place || places.some((other, d) => d !== axis && !isWhole(other, d))) return undefined;
  const { start, step, size } = place;
  const isInside = step === 1 && start >= 0 && start + size <= (x.shape[axis] as number);
  return isInside ? { axis, start, size } : undefined;
}

const whole = ({ shape }: Tensor): Window[] => shape.map((size) => ({ start: 0, step: 1, size }));

/** Resolves the number of a dimension; negative ones count from the end. Throws a ShapeError where it does not exist. */
export function axisOf(op: string, { shape }: Pick<TensorSpec, "shape">, axis: number): number {
  const d = axis < 0 ? axis + shape.length : axis;
  if (!(d in shape))
    throw new ShapeError(`${op}: axis ${axis} is none of the dimensions of [${shape}]`);
  return d;
}

/** Resolves the numbers of several dimensions. Throws a ShapeError where one does not exist, or is named twice. */
export function axesOf(
  op: string,
  spec: Pick<TensorSpec, "shape">,
  axes: readonly number[],
): ReadonlySet<number> {
  const places = axes.map((axis) => axisOf(op, spec, axis));
  const again = places.findIndex((d, i) => places.indexOf(d) < i);
  if (again >= 0)
    throw new ShapeError(`${op}: axes [${axes}] name dimension ${places[again]} more than once`);
  return new Set(places);
}

/** The indices that {@link slice} takes. */
export interface SliceOptions {
  /** The first. Default 0. */
  readonly start?: number;
  /** The first that is not taken. Default: the size of the axis. */
  readonly end?: number | undefined;
  /** Distance between the indices. Default 1. */
  readonly step?: number;
}

/**
 * The elements from `start` up to `end` (the size where undefined) along an axis, as a copy. Negative indices count from the end
 * and indices outside are ignored, as in Python. A `step` above 1 takes every step-th element.
 */
export const slice: (x: Tensor, axis: number, options?: SliceOptions) => Tensor = checked(
  "slice",
  {
    x: kinds.tensor,
    axis: kinds.integer,
    options: kinds.optionals({ start: kinds.integer, end: kinds.integer, step: kinds.number }),
  },
  (x: Tensor, axis: number, { start = 0, end, step = 1 }: SliceOptions = {}): Tensor => {
    const d = axisOf("slice", x, axis);
    const length = x.shape[d] as number;
    if (!Number.isInteger(step) || step < 1)
      throw new ShapeError(
        `slice: step ${step} is no whole number above 0; use flip() to go backwards`,
      );
    const inside = (place: number): number =>
      Math.min(Math.max(place < 0 ? place + length : place, 0), length);
    const from = inside(start);
    const size = Math.max(0, inside(end ?? length) - from);
    if (step > 1) return everyStep(x, d, from, Math.ceil(size / step), step);
    return size === length ? x : windowed(x, d, { start: from, step: 1, size });
  },
);

function windowed(x: Tensor, axis: number, place: Window, fill = 0): Tensor {
  return window.apply([x], { places: whole(x).with(axis, place), fill });
}

/** Takes the first of each group of `step` places by a window, which is differentiable. */
function everyStep(x: Tensor, axis: number, start: number, count: number, step: number): Tensor {
  const groups = windowed(x, axis, { start, step: 1, size: count * step });
  const [lead, tail] = [x.shape.slice(0, axis), x.shape.slice(axis + 1)];
  const firsts = windowed(groups.reshape([...lead, count, step, ...tail]), axis + 1, {
    start: 0,
    step: 1,
    size: 1,
  });
  return firsts.reshape([...lead, count, ...tail]);
}

/** `length` places along an axis, from `start` on; a negative start counts from the end. */
export const narrow: (x: Tensor, axis: number, start: number, length: number) => Tensor = checked(
  "narrow",
  { x: kinds.tensor, axis: kinds.integer, start: kinds.integer, length: kinds.integer },
  (x: Tensor, axis: number, start: number, length: number): Tensor => {
    const d = axisOf("narrow", x, axis);
    const size = x.shape[d] as number;
    const first = start < 0 ? start + size : start;
    if (first < 0 || length < 0 || first + length > size)
      throw new ShapeError(
        `narrow: ${length} places from ${start} on do not lie within axis ${axis} of [${x.shape}]`,
      );
    return slice(x, d, { start: first, end: first + length });
  },
);

/** The elements at one index of an axis, which is removed; a negative index counts from the end. */
export const select: (x: Tensor, axis: number, index: number) => Tensor = checked(
  "select",
  { x: kinds.tensor, axis: kinds.integer, index: kinds.integer },
  (x: Tensor, axis: number, index: number): Tensor => {
    const d = axisOf("select", x, axis);
    const size = x.shape[d] as number;
    const start = index < 0 ? index + size : index;
    if (!(start >= 0 && start < size))
      throw new ShapeError(`select: axis ${axis} of [${x.shape}] has no index ${index}`);
    return narrow(x, d, start, 1).reshape(x.shape.toSpliced(d, 1));
  },
);

/** Sizes of pieces of one size; the last may be shorter. Nothing is one piece without elements. */
function piecesOf(length: number, size: number): readonly number[] {
  if (length === 0) return [0];
  if (!(Number.isInteger(size) && size > 0))
    throw new ShapeError(`split: size ${size} is no whole number above 0`);
  return Array.from({ length: Math.ceil(length / size) }, (_, i) =>
    Math.min(size, length - i * size),
  );
}

/**
 * Splits a tensor along an axis into pieces of the given sizes, which add up to its size, or of one size; the last may be
 * shorter. An axis of size 0 gives one piece of one size.
 */
export const split: (x: Tensor, sizes: number | readonly number[], axis?: number) => Tensor[] =
  checked(
    "split",
    { x: kinds.tensor, sizes: kinds.axes, axis: kinds.optional(kinds.integer) },
    (x: Tensor, sizes: number | readonly number[], axis = 0): Tensor[] => {
      const d = axisOf("split", x, axis);
      const length = x.shape[d] as number;
      const all = typeof sizes === "number" ? piecesOf(length, sizes) : sizes;
      if (all.reduce((a, b) => a + b, 0) !== length)
        throw new ShapeError(`split: sizes ${all} do not add up to axis ${axis} of [${x.shape}]`);
      let start = 0;
      return all.map((size) => {
        start += size;
        return narrow(x, d, start - size, size);
      });
    },
  );

/** Splits a tensor along an axis into at most `count` pieces of equal size; the last may be shorter. Size 0 gives `count` of size 0. */
export const chunk: (x: Tensor, count: number, axis?: number) => Tensor[] = checked(
  "chunk",
  { x: kinds.tensor, count: kinds.integer, axis: kinds.optional(kinds.integer) },
  (x: Tensor, count: number, axis = 0): Tensor[] => {
    if (count < 1) throw new ShapeError(`chunk: count ${count} is below 1`);
    const length = x.shape[axisOf("chunk", x, axis)] as number;
    return split(x, length === 0 ? Array<0>(count).fill(0) : Math.ceil(length / count), axis);
  },
);

const product = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1);

export const catOp: Op<number> = defineOp<number>({
  name: "cat",
  castPolicy: "promote",
  shape(inputs, axis) {
    const [first] = inputs as [TensorSpec];
    for (const { shape, dtype } of inputs) {
      if (dtype !== first.dtype)
        throw new DTypeError(`cat: operands are ${first.dtype} and ${dtype}; cast one with to()`);
      if (shape.with(axis, 0).join() !== first.shape.with(axis, 0).join())
        throw new ShapeError(
          `cat: [${first.shape}] and [${shape}] differ in more than axis ${axis}`,
        );
    }
    const size = inputs.reduce((total, { shape }) => total + (shape[axis] as number), 0);
    return [{ shape: first.shape.with(axis, size), dtype: first.dtype }];
  },
  forward({ target, inputs, outputs, attributes: axis }) {
    const out = outputs[0] as Operand;
    const sizes = inputs.map(({ shape }) => shape[axis] as number);
    const lines = {
      outer: product(out.shape.slice(0, axis)),
      inner: product(out.shape.slice(axis + 1)),
    };
    target.launch(kernels.concatenate({ inputs, out }, { ...lines, sizes }));
  },
  backward({ inputs, gradients, needs, attributes: axis }) {
    let start = 0;
    return inputs.map(({ shape }, i) => {
      const size = shape[axis] as number;
      start += size;
      return needs[i] ? narrow(gradients[0] as Tensor, axis, start - size, size) : undefined;
    });
  },
});

/** Tensors one after the other along an axis. Floating dtypes promote, with or without autocast. */
export const cat: (tensors: readonly Tensor[], axis?: number) => Tensor = checked(
  "cat",
  { tensors: kinds.tensors, axis: kinds.optional(kinds.integer) },
  (tensors: readonly Tensor[], axis = 0): Tensor => {
    const [first] = tensors;
    if (!first) throw new ShapeError("cat needs at least one tensor");
    const d = axisOf("cat", first, axis);
    const odd = tensors.find(({ rank }) => rank !== first.rank);
    if (odd) throw new ShapeError(`cat: [${first.shape}] and [${odd.shape}] differ in rank`);
    let pieces = tensors;
    while (pieces.length > kernels.maxConcatenated) {
      const groups = Math.ceil(pieces.length / kernels.maxConcatenated);
      pieces = Array.from({ length: groups }, (_, g) =>
        catOp.apply(
          pieces.slice(g * kernels.maxConcatenated, (g + 1) * kernels.maxConcatenated),
          d,
        ),
      );
    }
    return catOp.apply(pieces, d);
  },
);

/** Adds places before and behind each dimension, with `value` in them; negative numbers take places away. */
export const pad: (
  x: Tensor,
  padding: readonly (readonly [before: number, behind: number])[],
  value?: number,
) => Tensor = checked(
  "pad",
  { x: kinds.tensor, padding: kinds.pairs, value: kinds.optional(kinds.number) },
  (
    x: Tensor,
    padding: readonly (readonly [before: number, behind: number])[],
    value = 0,
  ): Tensor => {
    if (padding.length !== x.rank)
      throw new ShapeError(
        `pad: [${x.shape}] needs [before, behind] for each of its ${x.rank} dimensions, not for ${padding.length}`,
      );
    const places = padding.map(([before, behind], d): Window => {
      const size = (x.shape[d] as number) + before + behind;
      if (size < 0)
        throw new ShapeError(
          `pad: [${before}, ${behind}] leaves nothing of axis ${d} of [${x.shape}]`,
        );
      return { start: -before, step: 1, size };
    });
    return window.apply([x], { places, fill: value });
  },
);

/** Shifts the last axis by some places and sets the freed ones to `fill`. */
export const shift = (x: Tensor, by: number, fill: number): Tensor =>
  windowed(x, x.rank - 1, { start: -by, step: 1, size: x.shape.at(-1) as number }, fill);

/** Reverses some axes. */
export const flip: (x: Tensor, axes: number | readonly number[]) => Tensor = checked(
  "flip",
  { x: kinds.tensor, axes: kinds.axes },
  (x: Tensor, axes: number | readonly number[]): Tensor => {
    if (x.rank === 0) {
      axesOf("flip", { shape: [1] }, [axes].flat());
      return x;
    }
    const places = whole(x);
    for (const d of axesOf("flip", x, [axes].flat())) {
      const size = x.shape[d] as number;
      places[d] = { start: size - 1, step: -1, size };
    }
    return window.apply([x], { places, fill: 0 });
  },
);
