import { isFloating } from "@halfstep/formats/dtypes";
import * as ops from "@halfstep/tensor";
import { castTo, Tensor } from "@halfstep/tensor";
import { repeat, tril, triu } from "@halfstep/tensor/functional";
import { dataType } from "../data-type.js";
import type { Call, OnnxValue, Operator } from "./call.js";
import { storedAs } from "./host-numbers.js";
import {
  broadcastShape,
  concatenated,
  expanded,
  gathered,
  permuted,
  picked,
  requireHostShape,
  triangle,
} from "./host-ops.js";
import { countOf, HostTensor } from "./host-tensor.js";

/** The same numbers in another shape. */
const reshaped = (x: OnnxValue, shape: readonly number[]): OnnxValue =>
  x instanceof Tensor ? x.reshape(shape) : new HostTensor(x.type, shape, x.values);

function reshape(call: Call): OnnxValue {
  const x = call.value(0);
  const wanted = call.list(1, "shape");
  const isZero = call.number("allowzero", 0) === 1;
  const sizes = wanted.map((size, d) => (size === 0 && !isZero ? (x.shape[d] ?? 0) : size));
  const known = countOf(sizes.filter((size) => size !== -1));
  const shape = sizes.map((size) => (size === -1 ? countOf(x.shape) / known : size));
  if (
    countOf(shape) !== countOf(x.shape) ||
    shape.some((size) => !Number.isInteger(size) || size < 0)
  )
    throw call.malformed(`[${x.shape}] does not fill [${wanted}]`);
  return reshaped(x, shape);
}

function flatten(call: Call): OnnxValue {
  const x = call.value(0);
  const given = call.number("axis", 1);
  const axis = given < 0 ? given + x.shape.length : given;
  return reshaped(x, [countOf(x.shape.slice(0, axis)), countOf(x.shape.slice(axis))]);
}

function squeeze(call: Call): OnnxValue {
  const x = call.value(0);
  const axes = call.optionalList(1, "axes")?.map((axis) => call.axis(axis, x.shape.length));
  const isGone = (size: number, d: number): boolean => (axes ? axes.includes(d) : size === 1);
  return reshaped(
    x,
    x.shape.filter((size, d) => !isGone(size, d)),
  );
}

function unsqueeze(call: Call): OnnxValue {
  const x = call.value(0);
  const axes = call.list(1, "axes");
  const rank = x.shape.length + axes.length;
  const places = new Set(axes.map((axis) => call.axis(axis, rank)));
  const sizes = x.shape.values();
  return reshaped(
    x,
    Array.from({ length: rank }, (_, d) => (places.has(d) ? 1 : (sizes.next().value as number))),
  );
}

function transpose(call: Call): OnnxValue {
  const x = call.value(0);
  const order = call.numbers("perm") ?? x.shape.map((_, d) => x.shape.length - 1 - d);
  if (!(x instanceof HostTensor)) return x.permute(order);
  const axes = order.map((d) => call.axis(d, x.shape.length));
  if (axes.length !== x.shape.length || new Set(axes).size !== axes.length)
    throw call.malformed(`the order [${order}] of ${x.shape.length} dimensions`);
  return permuted(x, axes);
}

function concat(call: Call): OnnxValue {
  const axis = call.axis(call.number("axis", 0), call.shapeOf(0).length);
  const { inputs } = call;
  if (inputs.every((each) => each instanceof HostTensor)) return concatenated(inputs, axis);
  const parts = inputs.map((_, place) => call.tensor(place));
  const [first] = parts as [Tensor];
  return ops.cat(
    parts.map((part) => castTo(part, first.dtype)),
    axis,
  );
}

function split(call: Call): readonly OnnxValue[] {
  const x = call.value(0);
  const axis = call.axis(call.number("axis", 0), x.shape.length);
  const length = x.shape[axis] as number;
  const count = call.node.outputs.length;
  const each = Math.ceil(length / count);
  const sizes =
    call.optionalList(1, "sizes") ??
    Array.from({ length: count }, (_, i) => Math.min(each, length - i * each));
  if (
    sizes.length !== count ||
    sizes.reduce((a, b) => a + b, 0) !== length ||
    sizes.some((n) => n < 0)
  )
    throw call.malformed(`sizes [${sizes}] of ${length}, for ${count} results`);
  if (x instanceof Tensor) return ops.split(x, sizes, axis);
  let start = 0;
  return sizes.map((size) => {
    start += size;
    return picked(x, axis, { start: start - size, step: 1, count: size });
  });
}

/** The places that Slice takes of an axis. */
function range(size: number, start: number, end: number, step: number) {
  const clamped = (place: number, low: number, high: number): number =>
    Math.min(Math.max(place < 0 ? place + size : place, low), high);
  const [from, to] =
    step > 0
      ? [clamped(start, 0, size), clamped(end, 0, size)]
      : [clamped(start, -1, size - 1), end < -size ? -1 : clamped(end, -1, size - 1)];
  return { start: from, step, count: Math.max(0, Math.ceil((to - from) / step)) };
}

function slice(call: Call): OnnxValue {
  let x = call.value(0);
  const [starts, ends] = [call.list(1, "starts"), call.list(2, "ends")];
  const axes = call.optionalList(3, "axes") ?? starts.map((_, i) => i);
  const steps = call.optionalList(4, "steps") ?? starts.map(() => 1);
  for (const [i, given] of axes.entries()) {
    const axis = call.axis(given, x.shape.length);
    const size = x.shape[axis] as number;
    const step = steps[i] ?? 1;
    if (!Number.isInteger(step) || step === 0) throw call.malformed(`a step of ${step}`);
    const places = range(size, starts[i] ?? 0, ends[i] ?? size, step);
    if (x instanceof HostTensor) x = picked(x, axis, places);
    else if (step > 0)
      x = ops.slice(x, axis, {
        start: places.start,
        end: Math.min(size, places.start + places.count * step),
        step,
      });
    else if (step === -1 && places.count === size) x = ops.flip(x, axis);
    else throw call.unsupported("a part of an axis, backwards");
  }
  return x;
}

/** Places, of which negative ones count from the end. */
function placesOf(call: Call, operand: number, size: number): Tensor {
  const index = call.value(operand);
  if (index instanceof HostTensor) {
    const places = index.list.map((place) => (place < 0 ? place + size : place));
    return call.toTensor(HostTensor.integers(places, index.shape));
  }
  if (index.dtype === "uint32") return index;
  return castTo(ops.where(ops.lt(index, 0), index.add(size), index), "uint32");
}

function gather(call: Call): OnnxValue {
  const [x, index] = [call.value(0), call.value(1)];
  const axis = call.axis(call.number("axis", 0), x.shape.length);
  if (x instanceof HostTensor && index instanceof HostTensor) return gathered(x, index, axis);
  const rows = call.toTensor(x);
  if (index instanceof HostTensor && index.shape.length === 0) {
    const [place = 0] = index.list;
    return ops.select(rows, axis, place);
  }
  const given = placesOf(call, 1, rows.shape[axis] as number);
  const found = ops.indexSelect(rows, axis, given.reshape([given.size]));
  return found.reshape([
    ...rows.shape.slice(0, axis),
    ...given.shape,
    ...rows.shape.slice(axis + 1),
  ]);
}

function gatherElements(call: Call): OnnxValue {
  const x = call.tensor(0);
  const axis = call.axis(call.number("axis", 0), x.rank);
  return ops.gather(x, axis, placesOf(call, 1, x.shape[axis] as number));
}

function expand(call: Call): OnnxValue {
  const x = call.value(0);
  const shape = broadcastShape([x.shape, call.list(1, "shape")], "Expand");
  if (x instanceof HostTensor) return expanded(x, shape, "Expand");
  if (!Number.isSafeInteger(countOf(shape)) || shape.some((size) => size < 0))
    throw call.malformed(`the shape [${shape}]`);
  return x.expand(shape);
}

function constantOfShape(call: Call): OnnxValue {
  const shape = call.list(0, "shape");
  requireHostShape(shape, "ConstantOfShape");
  const value = call.node.attributes.get("value");
  const [type, number] =
    value instanceof HostTensor ? [value.type, value.values[0] ?? 0] : [dataType.FLOAT, 0];
  return new HostTensor(type, shape, new Float64Array(countOf(shape)).fill(number));
}

function rangeOf(call: Call): OnnxValue {
  const [start, limit, step] = [0, 1, 2].map((place) => call.list(place, "numbers")[0]) as [
    number,
    number,
    number,
  ];
  const count = Math.max(0, Math.ceil((limit - start) / step));
  requireHostShape([count], "Range");
  const { type } = call.value(0) as HostTensor;
  const store = storedAs(type);
  return new HostTensor(
    type,
    [count],
    new Float64Array(count).map((_, i) => store(start + store(i * step))),
  );
}

function trilu(call: Call): OnnxValue {
  const x = call.value(0);
  const diagonal = call.optionalList(1, "diagonal")?.[0] ?? 0;
  const isUpper = call.number("upper", 1) === 1;
  if (x instanceof HostTensor) return triangle(x, isUpper, diagonal);
  return isUpper ? triu(x, { diagonal }) : tril(x, { diagonal });
}

function pad(call: Call): OnnxValue {
  const x = call.tensor(0);
  if (call.text("mode", "constant") !== "constant")
    throw call.unsupported("a mode other than constant");
  const widths = call.list(1, "widths");
  const value = call.has(2) ? call.scalar(2) : 0;
  if (value === undefined) throw call.unsupported("a value that is no constant");
  if (!isFloating(x.dtype) && !(Math.abs(value) < 2 ** 31))
    throw call.unsupported(`the value ${value}, which 32 bits do not hold`);
  const axes = (call.optionalList(3, "axes") ?? x.shape.map((_, d) => d)).map((axis) =>
    call.axis(axis, x.rank),
  );
  if (widths.length !== 2 * axes.length) throw call.malformed(`widths [${widths}]`);
  const padding = x.shape.map((_, d): [number, number] => {
    const place = axes.indexOf(d);
    return place < 0 ? [0, 0] : [widths[place] as number, widths[place + axes.length] as number];
  });
  return ops.pad(x, padding, value);
}

function shapeOf(call: Call): OnnxValue {
  const shape = call.shapeOf(0);
  const end = call.number("end", shape.length);
  return HostTensor.integers(shape.slice(call.number("start", 0), end));
}

function cumsum(call: Call): OnnxValue {
  const x = call.tensor(0);
  if (call.number("exclusive", 0) === 1) throw call.unsupported("exclusive sums");
  const axis = call.axis(call.list(1, "axis")[0] as number, x.rank);
  return ops.cumsum(x, axis, { reverse: call.number("reverse", 0) === 1 });
}

/** Operators that move numbers, and those that make them of shapes. */
export const shapes: Readonly<Record<string, Operator>> = {
  Reshape: reshape,
  Flatten: flatten,
  Squeeze: squeeze,
  Unsqueeze: unsqueeze,
  Transpose: transpose,
  Concat: concat,
  Split: split,
  Slice: slice,
  Gather: gather,
  GatherElements: gatherElements,
  Expand: expand,
  ConstantOfShape: constantOfShape,
  Range: rangeOf,
  Trilu: trilu,
  Pad: pad,
  Shape: shapeOf,
  Size: (call) => HostTensor.integers([countOf(call.shapeOf(0))], []),
  Tile: (call) => repeat(call.tensor(0), call.list(1, "counts")),
  CumSum: cumsum,
};
