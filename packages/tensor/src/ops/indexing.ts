import { DTypeError } from "@halfstep/autocast";
import * as kernels from "@halfstep/kernels";
import { checked } from "../arguments/arguments.js";
import { isTensor } from "../arguments/is-tensor.js";
import * as kinds from "../arguments/kinds.js";
import { noGrad } from "../autograd/grad-mode.js";
import { castTo } from "../dispatch/cast.js";
import { type Composite, composite } from "../dispatch/composite.js";
import { defineOp, type Op, type Operand, type TensorSpec } from "../dispatch/op.js";
import { ShapeError } from "../errors.js";
import type { Tensor } from "../tensor/tensor.js";
import { eq, lt, where } from "./comparison.js";
import { floating } from "./floating.js";
import { indexBits } from "./index-bits.js";
import { broadcastAll } from "./pointwise.js";
import { axisOf, narrow } from "./windows.js";

const product = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1);

/** A shape as [outer, size, inner] around an axis. */
const around = (shape: readonly number[], axis: number) => ({
  outer: product(shape.slice(0, axis)),
  size: shape[axis] as number,
  inner: product(shape.slice(axis + 1)),
});

function indices(op: string, { dtype }: TensorSpec): void {
  if (dtype !== "uint32")
    throw new DTypeError(`${op}: indices are ${dtype}; make them from a Uint32Array`);
}

/** Indices into a dimension as uint32; negative int32 ones count from its end. */
function placesFromEnds(op: string, index: Tensor, size: number): Tensor {
  const counted = index.dtype === "int32" ? where(lt(index, 0), index.add(size), index) : index;
  return indexBits(op, "indices", counted);
}

/** Zeros of a shape, made where they are needed. */
const zeros = ({ runtime, dtype }: Tensor, shape: readonly number[]): Tensor =>
  castTo(runtime.one.mul(0), dtype).expand(shape);

/** A scalar as a line of one element, which it is for torch. */
const asLine = (x: Tensor): Tensor => (x.rank === 0 ? x.reshape([1]) : x);

export const gatherOp: Op<number> = defineOp<number>({
  name: "gather",
  castPolicy: "none",
  shape([x, index], axis) {
    const [input, places] = [x as TensorSpec, index as TensorSpec];
    indices("gather", places);
    if (places.shape.with(axis, 0).join() !== input.shape.with(axis, 0).join())
      throw new ShapeError(
        `gather: the index [${places.shape}] and the input [${input.shape}] differ in more than axis ${axis}`,
      );
    return [{ shape: places.shape, dtype: input.dtype }];
  },
  forward({ target, inputs, outputs, attributes: axis }) {
    const [input, index] = inputs as [Operand, Operand];
    target.launch(
      kernels.gather(
        { input, index, out: outputs[0] as Operand },
        {
          ...around(input.shape, axis),
          count: index.shape[axis] as number,
          indexing: "each",
        },
      ),
    );
  },
  backward({ inputs, gradients, attributes: axis }) {
    const [x, index] = inputs as [Tensor, Tensor];
    const g = gradients[0] as Tensor;
    return [scatterAdd(zeros(g, x.shape), axis, index, g), undefined];
  },
});

/**
 * result[…, k, …] = x[…, index[…, k, …], …] along an axis, with an index (uint32 or int32) for each element of the result. In other
 * axes the index may be shorter than x. An index out of range, or below 0, gives NaN.
 */
export const gather: (x: Tensor, axis: number, index: Tensor) => Tensor = checked(
  "gather",
  { x: kinds.tensor, axis: kinds.integer, index: kinds.tensor },
  (x: Tensor, axis: number, index: Tensor): Tensor => {
    let input = asLine(x);
    const d = axisOf("gather", input, axis);
    const places = asLine(indexBits("gather", "indices", index));
    for (const [other, size] of places.shape.entries())
      if (other !== d && size < (input.shape[other] ?? 0)) input = narrow(input, other, 0, size);
    const result = gatherOp.apply([input, places], d);
    return index.rank === 0 ? result.reshape([]) : result;
  },
);

interface Scatter {
  readonly axis: number;
  readonly op: "add" | "assign";
}

const scatterOp = (name: string, op: Scatter["op"]): Op<number> =>
  defineOp<number>({
    name,
    castPolicy: op === "add" ? "promote" : "none",
    shape([base, index, source], axis) {
      const [x, places, values] = [base, index, source] as [TensorSpec, TensorSpec, TensorSpec];
      indices(name, places);
      const { dtype } = floating(name, x);
      if (values.dtype !== dtype)
        throw new DTypeError(
          `${name}: operands are ${dtype} and ${values.dtype}; cast one with to()`,
        );
      if (
        values.shape.join() !== places.shape.join() ||
        places.shape.with(axis, 0).join() !== x.shape.with(axis, 0).join()
      )
        throw new ShapeError(
          `${name}: index [${places.shape}] and source [${values.shape}] need one shape, which may differ from [${x.shape}] in axis ${axis} only`,
        );
      return [x];
    },
    forward({ target, inputs, outputs, attributes: axis }) {
      const [base, index, source] = inputs as [Operand, Operand, Operand];
      kernels.scatter(
        target,
        { base, index, source, out: outputs[0] as Operand },
        { ...around(base.shape, axis), count: index.shape[axis] as number, op },
      );
    },
    backward({ inputs, gradients, needs, attributes: axis }) {
      const [, index] = inputs as [Tensor, Tensor];
      const g = gradients[0] as Tensor;
      const covered = (): Tensor => scatter(g, axis, index, zeros(g, index.shape));
      return [
        op === "add" ? g : needs[0] ? covered() : undefined,
        undefined,
        needs[2] ? gather(g, axis, index) : undefined,
      ];
    },
  });

const assignOp = scatterOp("scatter", "assign");
const addOp = scatterOp("scatterAdd", "add");

/**
 * x with `source` written to the places that a uint32 index of the same shape names along an axis; for equal places the last wins.
 */
export const scatter: (x: Tensor, axis: number, index: Tensor, source: Tensor) => Tensor = checked(
  "scatter",
  { x: kinds.tensor, axis: kinds.integer, index: kinds.tensor, source: kinds.tensor },
  (x: Tensor, axis: number, index: Tensor, source: Tensor): Tensor =>
    assignOp.apply([x, indexBits("scatter", "indices", index), source], axisOf("scatter", x, axis)),
);

/** x with `source` added to the places that a uint32 index of the same shape names along an axis; in one order, without atomics. */
export const scatterAdd: (x: Tensor, axis: number, index: Tensor, source: Tensor) => Tensor =
  checked(
    "scatterAdd",
    { x: kinds.tensor, axis: kinds.integer, index: kinds.tensor, source: kinds.tensor },
    (x: Tensor, axis: number, index: Tensor, source: Tensor): Tensor =>
      addOp.apply(
        [x, indexBits("scatterAdd", "indices", index), source],
        axisOf("scatterAdd", x, axis),
      ),
  );

export const selectOp: Op<number> = defineOp<number>({
  name: "indexSelect",
  castPolicy: "none",
  shape([x, index], axis) {
    const { shape, dtype } = x as TensorSpec;
    const places = index as TensorSpec;
    indices("indexSelect", places);
    if (places.shape.length !== 1)
      throw new ShapeError(`indexSelect needs an index [places], not [${places.shape}]`);
    return [{ shape: shape.with(axis, places.shape[0] as number), dtype }];
  },
  forward({ target, inputs, outputs, attributes: axis }) {
    const [input, index] = inputs as [Operand, Operand];
    target.launch(
      kernels.gather(
        { input, index, out: outputs[0] as Operand },
        { ...around(input.shape, axis), count: index.length, indexing: "rows" },
      ),
    );
  },
  backward({ inputs, gradients, attributes: axis }) {
    const [x, index] = inputs as [Tensor, Tensor];
    const size = x.shape[axis] as number;
    return [addRows.apply([gradients[0] as Tensor, index], { axis, size }), undefined];
  },
});

/** [source, index]: zeros, plus the source's places along an axis at the places that the index names. */
const addRows: Op<{ readonly axis: number; readonly size: number }> = defineOp<{
  readonly axis: number;
  readonly size: number;
}>({
  name: "addRows",
  castPolicy: "none",
  shape([source, index], { axis, size }) {
    indices("addRows", index as TensorSpec);
    const { shape, dtype } = source as TensorSpec;
    return [{ shape: shape.with(axis, size), dtype }];
  },
  forward({ target, inputs, outputs, attributes: { axis, size } }) {
    const [source, index] = inputs as [Operand, Operand];
    const { outer, inner } = around(source.shape, axis);
    kernels.addRows(
      target,
      { index, source, out: outputs[0] as Operand },
      { outer, inner, size, count: index.length },
    );
  },
  backward: ({ inputs, gradients, attributes: { axis } }) => [
    selectOp.apply([gradients[0] as Tensor, inputs[1] as Tensor], axis),
    undefined,
  ],
});

/** [base, source, index]: the base with the places that the index names along the first axis replaced by the source's. */
const putRows: Op<null> = defineOp<null>({
  name: "putRows",
  castPolicy: "none",
  shape([base, , index]) {
    indices("indexPut", index as TensorSpec);
    return [base as TensorSpec];
  },
  forward({ target, inputs, outputs }) {
    const [base, source, index] = inputs as [Operand, Operand, Operand];
    const { outer, inner, size } = around(base.shape, 0);
    kernels.putRows(
      target,
      { index, base, source, out: outputs[0] as Operand },
      { outer, inner, size, count: index.length },
    );
  },
  backward({ inputs, gradients, needs }) {
    const [, source, index] = inputs as [Tensor, Tensor, Tensor];
    const g = gradients[0] as Tensor;
    return [
      needs[0] ? putRows.apply([g, zeros(g, source.shape), index], null) : undefined,
      needs[1] ? selectOp.apply([g, index], 0) : undefined,
      undefined,
    ];
  },
});

/**
 * The places along an axis that an index [places] (uint32 or int32) names, in its order. An index out of range, or below 0, gives NaN. An index
 * of shape [] is one place.
 */
export const indexSelect: (x: Tensor, axis: number, index: Tensor) => Tensor = checked(
  "indexSelect",
  { x: kinds.tensor, axis: kinds.integer, index: kinds.tensor },
  (x: Tensor, axis: number, index: Tensor): Tensor => {
    const lines = asLine(x);
    const places = asLine(indexBits("indexSelect", "indices", index));
    const d = axisOf("indexSelect", lines, axis);
    if (x.rank > 0) return selectOp.apply([lines, places], d);
    if (places.size !== 1)
      throw new ShapeError(`indexSelect: of a scalar there is one place, not ${places.size}`);
    return selectOp.apply([lines, places], d).reshape([]);
  },
);

/** Options of {@link indexPut}. */
export interface IndexPutOptions {
  /** Add to the rows instead of replacing them. Default false. */
  readonly accumulate?: boolean;
}

/**
 * x with the rows that an index [...places] names replaced by those of `values` [...places, …], which broadcast, or added to; for equal places
 * the last wins. Several indices, which broadcast, name a place in as many dimensions. Of int32 indices negative ones count from the end.
 * Integers are replaced and added exactly, modulo 2^32.
 */
export const indexPut: Composite<
  (
    x: Tensor,
    index: Tensor | readonly Tensor[],
    values: Tensor,
    options?: IndexPutOptions,
  ) => Tensor
> = composite(
  {
    name: "indexPut",
    castPolicy: "promote",
    parameters: {
      x: kinds.tensor,
      index: kinds.either(kinds.tensor, kinds.tensors),
      values: kinds.tensor,
      options: kinds.optionals({ accumulate: kinds.flag }),
    },
  },
  (
    x: Tensor,
    given: Tensor | readonly Tensor[],
    values: Tensor,
    { accumulate = false }: IndexPutOptions = {},
  ): Tensor => {
    if (values.dtype !== x.dtype)
      throw new DTypeError(
        `indexPut: operands are ${x.dtype} and ${values.dtype}; cast one with to()`,
      );
    const list = isTensor(given) ? [given] : given;
    const dimensions = x.shape.slice(0, list.length);
    const rest = x.shape.slice(list.length);
    const [index, places] = flatIndex("indexPut", list, dimensions);
    const rows = [...places, ...rest];
    const lead = rows.length - values.rank;
    if (lead < 0 || values.shape.some((size, d) => size !== 1 && size !== rows[d + lead]))
      throw new ShapeError(
        `indexPut: values [${values.shape}] do not broadcast to [${rows}], the places that the indices name in [${x.shape}]`,
      );
    const spread = values.shape.join() === rows.join() ? values : values.expand(rows);
    const source = spread.reshape([index.size, ...rest]);
    const flat = x.reshape([product(dimensions), ...rest]);
    const result = accumulate
      ? flat.add(addRows.apply([source, index], { axis: 0, size: product(dimensions) }))
      : putRows.apply([flat, source, index], null);
    return result.reshape(x.shape);
  },
);

interface PlaceIn {
  /** Number of places in the dimensions before this one. */
  readonly places: number;
  /** The size of this one. */
  readonly size: number;
}

const placeOp: Op<PlaceIn> = defineOp<PlaceIn>({
  name: "placeIn",
  castPolicy: "none",
  shape(inputs) {
    for (const spec of inputs) indices("placeIn", spec);
    return [{ shape: broadcastAll("placeIn", inputs), dtype: "uint32" }];
  },
  forward: ({ target, inputs, outputs, attributes: { places, size } }) =>
    target.launch(
      kernels.elementwise(kernels.placeIn, inputs, outputs[0] as Operand, [places, size]),
    ),
  backward: "none",
});

/** place · size + index, all uint32: the place in one more dimension. Past the end of the tensor where one is out of range. */
export const placeIn = (place: Tensor, index: Tensor, dimension: PlaceIn): Tensor =>
  placeOp.apply([place, index], dimension);

/**
 * The flat places [places] that indices name together, one for each dimension, and the shape to which they broadcast. A place is past the end
 * where an index is out of range; negative ones count from the end of their dimension.
 */
export function flatIndex(
  op: string,
  indices: readonly Tensor[],
  dimensions: readonly number[],
): [places: Tensor, shape: readonly number[]] {
  if (indices.length !== dimensions.length || indices.length === 0)
    throw new ShapeError(
      `${op}: ${indices.length} indices do not fit the dimensions [${dimensions}]`,
    );
  const shape = broadcastAll(op, indices);
  return noGrad(() => {
    const [first, ...others] = indices.map((index, d) => {
      const places = placesFromEnds(op, index, dimensions[d] as number);
      return places.shape.join() === shape.join() ? places : places.expand(shape);
    }) as [Tensor, ...Tensor[]];
    const place = others.reduce((before, index, d) => {
      const places = product(dimensions.slice(0, d + 1));
      return placeIn(before, index, { places, size: dimensions[d + 1] as number });
    }, first);
    return [place.reshape([product(shape)]), shape];
  });
}

/** Options of {@link embedding}. */
export interface EmbeddingOptions {
  /** The row of padding, which gets no gradient; negative numbers count from the end. */
  readonly paddingIndex?: number;
}

/** Rows of `weight` [words, features] by indices (uint32 or int32) of any shape, as [...indices, features]. One out of range gives NaN. */
export const embedding: (index: Tensor, weight: Tensor, options?: EmbeddingOptions) => Tensor =
  checked(
    "embedding",
    {
      index: kinds.tensor,
      weight: kinds.tensor,
      options: kinds.optionals({ paddingIndex: kinds.number }),
    },
    (index: Tensor, weight: Tensor, { paddingIndex }: EmbeddingOptions = {}): Tensor => {
      const [words, features] = weight.shape as [number, number];
      if (weight.rank !== 2)
        throw new ShapeError(`embedding needs a weight [words, features], not [${weight.shape}]`);
      const given = paddingIndex ?? 0;
      const padding = given < 0 ? given + words : given;
      if (
        paddingIndex !== undefined &&
        !(Number.isInteger(padding) && padding >= 0 && padding < words)
      )
        throw new ShapeError(
          `embedding: paddingIndex ${paddingIndex} is none of the ${words} words`,
        );
      const flat = indexBits("embedding", "indices", index, [index.size]);
      const rows = indexSelect(weight, 0, flat);
      const result = paddingIndex === undefined ? rows : cutRows(rows, eq(flat, padding));
      return result.reshape([...index.shape, features]);
    },
  );

/** The same rows, without gradients for the masked ones. */
function cutRows(rows: Tensor, mask: Tensor): Tensor {
  const column = mask.reshape([mask.size, 1]);
  return where(column, rows.detach(), rows);
}

/** 1 in the class that each label (uint32 or int32) names, 0 in the others, as float32 [...labels, classes]. */
export const oneHot: (labels: Tensor, classes: number) => Tensor = checked(
  "oneHot",
  { labels: kinds.tensor, classes: kinds.integer },
  (labels: Tensor, classes: number): Tensor => {
    const known = indexBits("oneHot", "labels", labels, [...labels.shape, 1]);
    const names = labels.runtime.tensor(Uint32Array.from({ length: classes }, (_, c) => c));
    return castTo(eq(known, names), "float32");
  },
);
