import { isFloating } from "@halfstep/formats/dtypes";
import * as ops from "@halfstep/tensor";
import { castTo, type Tensor, Variable } from "@halfstep/tensor";
import type { Call, OnnxValue, Operator } from "./call.js";
import { storedAs } from "./host-numbers.js";
import { HostTensor } from "./host-tensor.js";
import { fromLast, toLast } from "./layout.js";
import { recurrentLayer } from "./recurrent.js";
import { resize } from "./resize.js";

type Pair = readonly [number, number];

/** Two factors in one dtype: weights follow the values that they meet. */
function factors(call: Call): readonly [Tensor, Tensor] {
  const [a, b] = [call.tensor(0), call.tensor(1)];
  if (!isFloating(a.dtype)) throw call.unsupported("of integers");
  if (a.dtype === b.dtype) return [a, b];
  return a instanceof Variable ? [castTo(a, b.dtype), b] : [a, castTo(b, a.dtype)];
}

function gemm(call: Call): OnnxValue {
  const [a, b] = factors(call);
  const product = ops.matmul(a, b, {
    transA: call.number("transA", 0) === 1,
    transB: call.number("transB", 0) === 1,
  });
  const alpha = call.number("alpha", 1);
  const y = alpha === 1 ? product : product.mul(alpha);
  if (!call.has(2)) return y;
  const c = call.tensor(2);
  const beta = call.number("beta", 1);
  return y.add(castTo(beta === 1 ? c : c.mul(beta), y.dtype));
}

/** The padding [before, behind] with which windows begin at every stride of an axis: SAME_UPPER and SAME_LOWER. */
function samePadding(size: number, reach: number, stride: number, lower: boolean): Pair {
  const all = Math.max(0, (Math.ceil(size / stride) - 1) * stride + reach - size);
  const less = Math.floor(all / 2);
  return lower ? [all - less, less] : [less, all - less];
}

/** The sizes of windows over two dimensions, and the padding of each: [before, behind]. */
function windows(call: Call, kernel: Pair) {
  const strides = (call.numbers("strides") ?? [1, 1]) as Pair;
  const dilations = (call.numbers("dilations") ?? [1, 1]) as Pair;
  const given = call.numbers("pads") ?? [0, 0, 0, 0];
  const sizes = call.shapeOf(0).slice(2);
  if (kernel.length !== 2 || strides.length !== 2 || given.length !== 4 || sizes.length !== 2)
    throw call.unsupported("windows over other than two dimensions");
  if (strides.some((stride) => stride < 1)) throw call.malformed("strides are not above 0");
  const automatic = call.text("auto_pad", "NOTSET");
  if (!["NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"].includes(automatic))
    throw call.unsupported(`auto_pad ${automatic}`);
  const [[top, bottom], [left, right]] = [0, 1].map((axis): Pair => {
    if (automatic === "NOTSET") return [given[axis] as number, given[axis + 2] as number];
    const reach = ((kernel[axis] as number) - 1) * (dilations[axis] as number) + 1;
    return automatic === "VALID"
      ? [0, 0]
      : samePadding(
          sizes[axis] as number,
          reach,
          strides[axis] as number,
          automatic === "SAME_LOWER",
        );
  }) as [Pair, Pair];
  const isEven = top === bottom && left === right;
  return {
    strides,
    dilations,
    isEven,
    padding: (isEven ? [top, left] : [0, 0]) as Pair,
    edges: [
      [top, bottom],
      [left, right],
    ] as const satisfies readonly Pair[],
    /** Adds unequal padding. */
    padded: (x: Tensor, fill: number): Tensor =>
      isEven
        ? x
        : ops.pad(
            x,
            [
              [0, 0],
              [top, bottom],
              [left, right],
              [0, 0],
            ],
            fill,
          ),
  };
}

function conv(call: Call): OnnxValue {
  const given = call.tensor(1);
  if (given.rank !== 4 || call.shapeOf(0).length !== 4)
    throw call.unsupported("other than two dimensions of images");
  const kernel = given.shape.slice(2) as unknown as Pair;
  const { padded, strides, dilations, padding } = windows(call, kernel);
  const image = padded(toLast(call.tensor(0)), 0);
  const weight = castTo(given, image.dtype).permute([2, 3, 1, 0]);
  const bias = call.has(2) ? castTo(call.tensor(2), image.dtype) : undefined;
  const options = {
    stride: strides,
    padding,
    dilation: dilations,
    groups: call.number("group", 1),
  };
  return fromLast(ops.conv2d(image, weight, bias, options));
}

function convTranspose(call: Call): OnnxValue {
  const given = call.tensor(1);
  if (given.rank !== 4 || call.shapeOf(0).length !== 4)
    throw call.unsupported("other than two dimensions of images");
  if (call.numbers("output_shape")) throw call.unsupported("output_shape");
  const [top = 0, left = 0, bottom = 0, right = 0] = call.numbers("pads") ?? [];
  if (call.text("auto_pad", "NOTSET") !== "NOTSET" || top !== bottom || left !== right)
    throw call.unsupported("padding that is not the same on both sides");
  const image = toLast(call.tensor(0));
  const weight = castTo(given, image.dtype).permute([2, 3, 1, 0]);
  const bias = call.has(2) ? castTo(call.tensor(2), image.dtype) : undefined;
  return fromLast(
    ops.convTranspose2d(image, weight, bias, {
      stride: (call.numbers("strides") ?? [1, 1]) as Pair,
      padding: [top, left],
      outputPadding: (call.numbers("output_padding") ?? [0, 0]) as Pair,
      dilation: (call.numbers("dilations") ?? [1, 1]) as Pair,
      groups: call.number("group", 1),
    }),
  );
}

const pool =
  (kind: "max" | "average"): Operator =>
  (call) => {
    const window = (call.numbers("kernel_shape") ?? []) as unknown as Pair;
    const { strides: stride, dilations, padding, isEven, edges, padded } = windows(call, window);
    const ceilMode = call.number("ceil_mode", 0) === 1;
    if (dilations.some((each) => each !== 1)) throw call.unsupported("dilations");
    if (call.node.outputs.length > 1) throw call.unsupported("indices");
    const x = toLast(call.tensor(0));
    const options = { window, stride, padding, ceilMode };
    // Unequal padding is a part of the image: then ceil_mode keeps windows that begin behind the image, which ONNX leaves out.
    const inside = (y: Tensor): Tensor =>
      [1, 2].reduce((all, axis) => {
        const before = (edges[axis - 1] as Pair)[0];
        const last = Math.ceil(((x.shape[axis] as number) + before) / (stride[axis - 1] as number));
        return ops.slice(all, axis, { end: last });
      }, y);
    if (kind === "max") {
      const image = padded(x, Number.NEGATIVE_INFINITY);
      return fromLast(inside(ops.maxPool2d(image, options)));
    }
    const countIncludePad = call.number("count_include_pad", 0) === 1;
    const means = (image: Tensor): Tensor =>
      ops.avgPool2d(padded(image, 0), { ...options, countIncludePad: countIncludePad || !isEven });
    if (countIncludePad || isEven) return fromLast(inside(means(x)));
    // The mean of ones is the share of the window that lies in the image.
    const ones = x.runtime.full([1, ...x.shape.slice(1, 3), 1], 1, { dtype: x.dtype });
    return fromLast(inside(means(x).div(means(ones))));
  };

function batchNorm(call: Call): OnnxValue {
  if (call.number("training_mode", 0) === 1) throw call.unsupported("training_mode");
  const parameters = [1, 2, 3, 4].map((place) => call.value(place));
  if (!parameters.every((each): each is Variable => each instanceof Variable))
    throw call.unsupported("parameters that are no constants");
  const [weight, bias, mean, variance] = parameters as [Variable, Variable, Variable, Variable];
  const x = call.tensor(0);
  const eps = call.number("epsilon", 1e-5);
  const normalized = (image: Tensor): Tensor =>
    ops.batchNormInference(image, weight, bias, { mean, variance }, { eps });
  if (x.rank === 4) return fromLast(normalized(toLast(x)));
  if (x.rank < 2) throw call.unsupported(`${x.rank} dimensions`);
  // Channels are normalised where they come last.
  const places = x.shape.map((_, d) => d).slice(2);
  const back = [0, x.rank - 1, ...places.map((d) => d - 1)];
  return normalized(x.permute([0, ...places, 1])).permute(back);
}

function layerNorm(call: Call): OnnxValue {
  const x = call.tensor(0);
  if (call.node.outputs.length > 1) throw call.unsupported("its statistics");
  const axis = call.axis(call.number("axis", -1), x.rank);
  const shape = x.shape.slice(axis);
  const parameter = (place: number): Tensor | undefined =>
    call.has(place) ? call.tensor(place).reshape(shape) : undefined;
  const y = ops.layerNorm(x, shape, parameter(1), parameter(2), {
    eps: call.number("epsilon", 1e-5),
  });
  return y;
}

type Reduce = (x: Tensor, axes: readonly number[], options: { keepDimensions: boolean }) => Tensor;

function reduced(call: Call, reduce: Reduce): OnnxValue {
  const value = call.value(0);
  const rank = value.shape.length;
  const given = call.numbers("axes") ?? call.optionalList(1, "axes");
  const isEmpty = !given || given.length === 0;
  if (isEmpty && call.number("noop_with_empty_axes", 0) === 1) return value;
  const axes = isEmpty ? value.shape.map((_, d) => d) : given.map((axis) => call.axis(axis, rank));
  return reduce(call.tensor(0), axes, { keepDimensions: call.number("keepdims", 1) === 1 });
}

const reduction =
  (reduce: Reduce): Operator =>
  (call) =>
    reduced(call, reduce);

/** A product of sizes. */
function reduceProd(call: Call): OnnxValue {
  const x = call.value(0);
  if (!(x instanceof HostTensor) || x.shape.length > 1) return reduced(call, ops.prod);
  const isKept = call.number("keepdims", 1) === 1;
  const store = storedAs(x.type);
  const product = x.list.reduce((a, b) => store(a * b), 1);
  return new HostTensor(x.type, isKept ? x.shape.map(() => 1) : [], [product]);
}

const global =
  (reduce: Reduce): Operator =>
  (call) => {
    if (call.shapeOf(0).length !== 4) throw call.unsupported("other than two dimensions");
    const x = toLast(call.tensor(0));
    return fromLast(reduce(x, [1, 2], { keepDimensions: true }));
  };

const probabilities =
  (of: (x: Tensor, axis: number) => Tensor): Operator =>
  (call) => {
    const x = call.tensor(0);
    return of(x, call.axis(call.number("axis", -1), x.rank));
  };

function argmax(call: Call): OnnxValue {
  const x = call.tensor(0);
  const axis = call.axis(call.number("axis", 0), x.rank);
  const isLast = call.number("select_last_index", 0) === 1;
  const searched = isLast ? ops.flip(x, axis) : x;
  const place =
    call.node.operator === "ArgMax" ? ops.argmax(searched, axis) : ops.argmin(searched, axis);
  const found = castTo(isLast ? place.neg().add((x.shape[axis] as number) - 1) : place, "int32");
  return call.number("keepdims", 1) === 1 ? found.reshape(x.shape.with(axis, 1)) : found;
}

const matmul: Operator = (call) => ops.matmul(...factors(call));

/** Operators with sums. */
export const layers: Readonly<Record<string, Operator>> = {
  MatMul: matmul,
  Gemm: gemm,
  Conv: conv,
  ConvTranspose: convTranspose,
  Resize: resize,
  LSTM: recurrentLayer("LSTM"),
  GRU: recurrentLayer("GRU"),
  MaxPool: pool("max"),
  AveragePool: pool("average"),
  GlobalAveragePool: global(ops.mean),
  GlobalMaxPool: global(ops.amax),
  BatchNormalization: batchNorm,
  LayerNormalization: layerNorm,
  ReduceMean: reduction(ops.mean),
  ReduceSum: reduction(ops.sum),
  ReduceMax: reduction(ops.amax),
  ReduceMin: reduction(ops.amin),
  ReduceProd: reduceProd,
  Softmax: probabilities(ops.softmax),
  LogSoftmax: probabilities(ops.logSoftmax),
  ArgMax: argmax,
  ArgMin: argmax,
};
