import { dtypes, isFloat8, isInteger } from "@halfstep/formats/dtypes";
import type { BatchNormOptions, MatmulOptions } from "@halfstep/tensor";
import {
  type NormAttributes,
  structuredOps as ops,
  type Reduction,
  type Windows,
} from "@halfstep/tensor/internals";
import { dataType } from "../data-type.js";
import { emitAttention, emitProbabilities } from "./attention.js";
import type { Emission } from "./emission.js";
import type { Reference } from "./graph-builder.js";
import { emitConv2d, emitConvTranspose2d, emitPool } from "./images.js";
import { emitLayer } from "./recurrent.js";
import { emitResample } from "./resample.js";
import { constantSize, isConstant, isSameSize, type Size } from "./size.js";
import { plain } from "./values.js";

const largest = Number(2n ** 53n - 1n);

/** The last two dimensions exchanged. */
const exchanged = (rank: number): readonly number[] =>
  rank < 2 ? plain(rank) : [...plain(rank - 2), rank - 1, rank - 2];

function emitMatmul(emission: Emission): void {
  const { transA = false, transB = false } = emission.attributes<MatmulOptions>();
  const type = emission.typeOf();
  const factor = (place: number, isTransposed: boolean): Reference => {
    const { length } = emission.input(place).shape;
    const order = isTransposed ? exchanged(length) : plain(length);
    return movesBatch(emission, place, order)
      ? transposedWide(emission, place, order)
      : emission.take(place, { type, order });
  };
  emission.result(emission.node("MatMul", [factor(0, transA), factor(1, transB)]));
}

/** Whether a factor of halves has its batch elsewhere, as sequences with the length first. */
function movesBatch(emission: Emission, place: number, order: readonly number[]): boolean {
  const own = emission.orderOf(place);
  const isTurned = own.join() !== order.join() && own.at(-1) === order.at(-1);
  return isTurned && order.length === 3 && emission.typeOf() === dataType.FLOAT16;
}

/** ONNX Runtime 1.30 crashes where it joins such a transposition of halves with the product: it is done in float32. */
function transposedWide(emission: Emission, place: number, order: readonly number[]): Reference {
  const own = emission.orderOf(place);
  const wide = emission.take(place, { type: dataType.FLOAT, order: own });
  const perm = order.map((d) => own.indexOf(d));
  const turned = emission.node("Transpose", [wide], { perm });
  return emission.cast(turned, dataType.FLOAT, dataType.FLOAT16);
}

function emitBatchNorm(emission: Emission): void {
  const { eps = 1e-5 } = emission.attributes<BatchNormOptions>();
  const { length } = emission.input(0).shape;
  const order = [0, length - 1, ...plain(length).slice(1, -1)];
  const [weight, bias, mean, variance] = [1, 2, 3, 4].map((place) => emission.take(place)) as [
    Reference,
    Reference,
    Reference,
    Reference,
  ];
  const output = emission.node(
    "BatchNormalization",
    [emission.take(0, { order }), weight, bias, mean, variance],
    { epsilon: { float: eps } },
  );
  emission.result(output, { order });
}

/** How many of the last dimensions have a number of elements together, in every trace. */
function normalizedRank(emission: Emission, { hasWeight }: NormAttributes): number {
  if (hasWeight) return emission.input(1).shape.length;
  const widths = emission.everyAttributes<NormAttributes>().map(({ shape }) => shape.width);
  const shapes = emission.shapesOf(0);
  const ranks = emission.shapeOf().map((_, i) => i + 1);
  const found = ranks.find((rank) =>
    shapes.every((sizes, t) => sizes.slice(-rank).reduce((a, b) => a * b) === widths[t]),
  );
  if (!found) throw emission.unsupported("the size of the last dimension changes");
  return found;
}

function emitLayerNorm(emission: Emission): void {
  const attributes = emission.attributes<NormAttributes>("shape");
  const rank = normalizedRank(emission, attributes);
  const type = emission.typeOf();
  const shape = emission.shapeOf().slice(-rank);
  const weight = attributes.hasWeight ? emission.take(1, { type }) : filled(emission, shape, 1);
  const inputs = [emission.take(0, { type }), weight];
  if (attributes.hasBias) inputs.push(emission.take(attributes.hasWeight ? 2 : 1, { type }));
  const output = emission.node("LayerNormalization", inputs, {
    axis: -rank,
    epsilon: { float: attributes.eps },
  });
  emission.result(output);
}

const filled = (emission: Emission, shape: readonly Size[], value: number): Reference =>
  emission.node("Expand", [emission.number(emission.typeOf(), value), emission.sizes(shape)]);

function emitRmsNorm(emission: Emission): void {
  const attributes = emission.attributes<NormAttributes>("shape");
  const rank = normalizedRank(emission, attributes);
  const type = emission.typeOf();
  const x = emission.take(0, { type });
  const axes = plain(emission.shapeOf().length).slice(-rank);
  const mean = reduced(emission, "ReduceMean", emission.node("Mul", [x, x]), axes);
  const root = emission.node("Sqrt", [
    emission.node("Add", [mean, emission.number(type, attributes.eps)]),
  ]);
  const normalized = emission.node("Div", [x, root]);
  emission.result(
    attributes.hasWeight
      ? emission.node("Mul", [normalized, emission.take(1, { type })])
      : normalized,
  );
}

/** A reduction that keeps its axes. Before opset 18 all but ReduceSum have them as an attribute. */
function reduced(
  emission: Emission,
  operator: string,
  x: Reference,
  axes: readonly number[],
): Reference {
  const isInput = emission.builder.opset >= 18 || operator === "ReduceSum";
  return isInput
    ? emission.node(operator, [x, emission.integers(axes)], { keepdims: 1 })
    : emission.node(operator, [x], { axes, keepdims: 1 });
}

const emitReduction =
  (operator: string) =>
  (emission: Emission): void => {
    emission.requireFloats();
    const { first, last } = emission.attributes<Reduction>();
    const order = emission.orderOf(0);
    const axes = plain(order.length).slice(first, last + 1);
    const x = emission.take(0, { order });
    emission.result(reduced(emission, operator, x, emission.placesOf(axes, order)), { order });
  };

const emitRows =
  (operator: string) =>
  (emission: Emission): void => {
    const type = emission.typeOf();
    emission.result(emission.node(operator, [emission.take(0, { type })], { axis: -1 }));
  };

/** No node: the result is the operand in another order, which readers turn where they need to. */
function emitPermute(emission: Emission): void {
  const { source, type, view } = emission.input(0);
  const order = emission.attributes<readonly number[]>();
  emission.alias({ source, type, view: order.map((d) => view[d] as number) });
}

/** What lies beyond the range of a dtype of 32 bits becomes its first or last number, as in casts of tensors. Only NaN is not 0 in the file. */
function within(emission: Emission, [least, most]: readonly [number, number]): Reference {
  const whole = dataType.INT64;
  // A choice, because ONNX Runtime's Clip, Min and Max of int64 compare 32 bits alone on some processors.
  const bounded = (x: Reference, test: "Less" | "Greater", bound: number): Reference => {
    const limit = emission.number(whole, bound);
    return emission.node("Where", [emission.node(test, [x, limit]), limit, x]);
  };
  const inRange = (x: Reference): Reference => bounded(bounded(x, "Less", least), "Greater", most);
  if (emission.input(0).type === whole) return inRange(emission.take(0));
  // What a Cast gives is defined within the range of int64 alone.
  const [low, high] = [-(2 ** 40), 2 ** 40].map((n) => emission.number(dataType.FLOAT, n));
  const near = emission.node("Clip", [
    emission.take(0, { type: dataType.FLOAT }),
    low as Reference,
    high as Reference,
  ]);
  return inRange(emission.cast(near, dataType.FLOAT, whole));
}

/** No node: the result is the operand in another type. What was cast before is rounded first. */
function emitCast(emission: Emission): void {
  const { source, type, view, dtype } = emission.input(0);
  const [to, given] = [emission.typeOf(), emission.dtypeOf()];
  if (isFloat8(dtype) || isFloat8(given))
    throw emission.unsupported("it rounds to 8 bits, and the file would not");
  if (isInteger(given) && given !== dtype && type !== dataType.BOOL) {
    emission.result(within(emission, dtypes[given].range));
    return;
  }
  const isMask = type === dataType.BOOL && to === dataType.INT64;
  if (source.type === type || to === type)
    emission.alias({ source, type: isMask ? type : to, view });
  else emission.result(emission.node("Cast", [emission.take(0)], { to }));
}

/** The order in which an operand can be read as if it were in its own: only dimensions of size 1 lie elsewhere. */
function rawOrder(emission: Emission): readonly number[] {
  const order = emission.orderOf(0);
  const { shape } = emission.input(0);
  const others = order.filter((d) => !isOne(shape[d] as Size));
  return others.every((d, i) => i === 0 || d > (others[i - 1] as number))
    ? order
    : plain(order.length);
}

const isOne = (size: Size): boolean => isConstant(size) && size.factor === 1;

function emitReshape(emission: Emission): void {
  const shape = emission.shapeOf();
  const value = emission.input(0);
  const isUnchanged =
    value.shape.length === shape.length &&
    shape.every((size, d) => isSameSize(size, value.shape[d] as Size));
  if (isUnchanged) {
    emission.alias(value);
    return;
  }
  const order = rawOrder(emission);
  const given = order.map((d) => value.shape[d] as Size);
  // 0 takes the operand's size, and −1 what is left.
  const wanted = shape.map((size, d) => {
    const from = given[d];
    return isConstant(size) ? size : from && isSameSize(size, from) ? constantSize(0) : size;
  });
  const open = wanted.flatMap((size, d) => (isConstant(size) ? [] : [d]));
  const target = open.length === 1 ? wanted.with(open[0] as number, constantSize(-1)) : wanted;
  const x = emission.take(0, { order });
  emission.result(emission.node("Reshape", [x, emission.sizes(target)]), { type: value.type });
}

function emitExpand(emission: Emission): void {
  const value = emission.input(0);
  const shape = emission.shapeOf();
  const lead = shape.length - value.shape.length;
  // 1 leaves the operand's size.
  const sizes = shape.map((size, d) => {
    const from = value.shape[d - lead];
    return from && isSameSize(size, from) ? constantSize(1) : size;
  });
  const output = emission.node("Expand", [emission.take(0), emission.sizes(sizes)]);
  emission.result(output, { type: value.type });
}

/** Whether a window ends within an axis, in every trace. */
const isWithin = (emission: Emission, d: number): boolean =>
  emission.everyAttributes<Windows>().every(({ places }, t) => {
    const { start = 0, size = 0 } = places[d] ?? {};
    return start + size <= (emission.shapesOf(0)[t]?.[d] as number);
  });

/** Slices, then padding. Neither takes a node where it does nothing. */
function emitWindow(emission: Emission): void {
  const { places, fill } = emission.attributes<Windows>("places");
  const { shape, type } = emission.input(0);
  const order = emission.orderOf(0);
  let result = emission.take(0, { order });
  const cut: { readonly axis: number; start: Size; end: Size; readonly step: number }[] = [];
  const pads = shape.map((): [number, number] => [0, 0]);
  for (const [d, { start, step, size }] of places.entries()) {
    const [from, length] = [
      emission.size<Windows>((each) => each.places[d]?.start ?? 0),
      emission.size<Windows>((each) => each.places[d]?.size ?? 0),
    ];
    const own = shape[d] as Size;
    emission.constant(emission.size<Windows>((each) => each.places[d]?.step ?? 1));
    if (step === 1 && isConstant(from) && start === 0 && isSameSize(length, own)) continue;
    if (step === -1) {
      const isWhole = start === own.factor - 1 && isConstant(own) && isSameSize(length, own);
      if (!isWhole) throw emission.unsupported("a part of an axis, backwards");
      cut.push({ axis: d, start: constantSize(-1), end: constantSize(-largest), step });
      continue;
    }
    if (!isConstant(from)) throw emission.unsupported("the start of a slice changes");
    if (start >= 0 && isWithin(emission, d)) {
      if (start > 0 && !isConstant(length))
        throw emission.unsupported("the size of a slice changes");
      const end = isConstant(length) ? constantSize(start + size) : length;
      cut.push({ axis: d, start: from, end, step });
      continue;
    }
    if (!isConstant(own) || !isConstant(length)) throw emission.unsupported("padding changes");
    const [low, high] = [Math.max(start, 0), Math.min(start + size, own.factor)];
    if (low > 0 || high < own.factor)
      cut.push({ axis: d, start: constantSize(low), end: constantSize(high), step });
    pads[d] = [Math.max(-start, 0), Math.max(start + size - own.factor, 0)];
  }
  if (cut.length > 0)
    result = emission.node("Slice", [
      result,
      emission.sizes(cut.map(({ start }) => start)),
      emission.sizes(cut.map(({ end }) => end)),
      emission.integers(cut.map(({ axis }) => order.indexOf(axis))),
      emission.integers(cut.map(({ step }) => step)),
    ]);
  if (pads.some(([before, behind]) => before > 0 || behind > 0)) {
    const inOrder = order.map((d) => pads[d] as [number, number]);
    const widths = [...inOrder.map(([before]) => before), ...inOrder.map(([, behind]) => behind)];
    result = emission.node("Pad", [result, emission.integers(widths), emission.number(type, fill)]);
  }
  emission.result(result, { type, order });
}

function emitCat(emission: Emission): void {
  const order = emission.orderOf(0);
  const type = emission.input(0).type;
  const parts = emission.op.inputs.map((_, place) => emission.take(place, { type, order }));
  const axis = order.indexOf(emission.attributes<number>());
  emission.result(emission.node("Concat", parts, { axis }), { type, order });
}

const emitGather =
  (operator: string) =>
  (emission: Emission): void => {
    const axis = emission.attributes<number>();
    const index = emission.take(1, { type: dataType.INT64 });
    const { type } = emission.input(0);
    emission.result(emission.node(operator, [emission.take(0), index], { axis }), { type });
  };

/** How each op that is no formula is written, by its definition. */
export const structured: ReadonlyMap<object, (emission: Emission) => void> = new Map<
  object,
  (emission: Emission) => void
>([
  [ops.cast, emitCast],
  [ops.reshape, emitReshape],
  [ops.permute, emitPermute],
  [ops.expand, emitExpand],
  [ops.window, emitWindow],
  [ops.cat, emitCat],
  [ops.indexSelect, emitGather("Gather")],
  [ops.gather, emitGather("GatherElements")],
  [ops.matmul, emitMatmul],
  [ops.conv2d, emitConv2d],
  [ops.convTranspose2d, emitConvTranspose2d],
  [ops.resample, emitResample],
  [ops.lstm, emitLayer("LSTM")],
  [ops.gru, emitLayer("GRU")],
  [ops.maxPool2d, emitPool("MaxPool")],
  [ops.avgPool2d, emitPool("AveragePool")],
  [ops.batchNorm, emitBatchNorm],
  [ops.layerNorm, emitLayerNorm],
  [ops.rmsNorm, emitRmsNorm],
  [ops.softmax, emitRows("Softmax")],
  [ops.logSoftmax, emitRows("LogSoftmax")],
  [ops.sum, emitReduction("ReduceSum")],
  [ops.mean, emitReduction("ReduceMean")],
  [ops.amax, emitReduction("ReduceMax")],
  [ops.amin, emitReduction("ReduceMin")],
  [ops.attention, emitAttention],
  [ops.attentionProbabilities, emitProbabilities],
]);
