import * as kernels from "@halfstep/kernels";
import { checked } from "../arguments/arguments.js";
import * as kinds from "../arguments/kinds.js";
import {
  type CallableOp,
  callable,
  defineOp,
  type Op,
  type Operand,
  type TensorSpec,
} from "../dispatch/op.js";
import { ShapeError } from "../errors.js";
import type { Tensor } from "../tensor/tensor.js";

/** Windows of {@link maxPool2d}; a pair is height and width. */
export interface PoolOptions {
  /** Size of a window. */
  readonly window: number | readonly [number, number];
  /** Default: the window. */
  readonly stride?: number | readonly [number, number];
  /** Default 0. */
  readonly padding?: number | readonly [number, number];
  /**
   * A last window may reach past the padding, if it does not begin in the padding on the right, as with torch's `ceil_mode`. Default false:
   * what the last whole window leaves is not read.
   */
  readonly ceilMode?: boolean | undefined;
}

/** Windows of {@link avgPool2d}. */
export interface AvgPoolOptions extends PoolOptions {
  /** Whether padding counts as zeros; otherwise means are of the input alone. Default true, as torch's `count_include_pad`. */
  readonly countIncludePad?: boolean;
}

const pair = (value: number | readonly [number, number]): readonly [number, number] =>
  typeof value === "number" ? [value, value] : value;

function attributesOf(
  op: string,
  shape: readonly number[],
  options: AvgPoolOptions,
): kernels.PoolAttributes {
  if (shape.length !== 4)
    throw new ShapeError(`${op} needs an input [batch, height, width, channels], not [${shape}]`);
  const [batch, height, width, channels] = shape as [number, number, number, number];
  const { window, stride = window, padding = 0, ceilMode, countIncludePad } = options;
  return {
    batch,
    height,
    width,
    channels,
    window: pair(window),
    stride: pair(stride),
    padding: pair(padding),
    ...(ceilMode && { ceilMode }),
    ...(countIncludePad === false && { countIncludePad }),
  };
}

function outputOf(op: string, x: TensorSpec, options: PoolOptions): TensorSpec {
  const attributes = attributesOf(op, x.shape, options);
  const { window, stride, padding, ceilMode = false } = attributes;
  const lacks = (size: number, d: 0 | 1): boolean =>
    size + 2 * padding[d] + (ceilMode ? stride[d] - 1 : 0) < window[d];
  if (lacks(attributes.height, 0) || lacks(attributes.width, 1))
    throw new ShapeError(
      `${op}: a window [${window}] does not fit into ${attributes.height}×${attributes.width} with padding [${padding}]`,
    );
  const [height, width] = kernels.poolOutputSize(attributes);
  return { shape: [attributes.batch, height, width, attributes.channels], dtype: x.dtype };
}

type Pool<O extends PoolOptions> = CallableOp<(x: Tensor, options: O) => Tensor, O>;

const poolOf = <O extends PoolOptions>(op: Op<O>, more: kinds.ParameterKinds): Pool<O> =>
  callable(
    op,
    {
      x: kinds.tensor,
      options: kinds.options({
        window: kinds.pair,
        stride: kinds.optional(kinds.pair),
        padding: kinds.optional(kinds.pair),
        ceilMode: kinds.optional(kinds.flag),
        ...more,
      }),
    },
    (x: Tensor, options: O) => op.apply([x], options),
  );

const maxPool2dOp: Op<PoolOptions> = defineOp<PoolOptions>({
  name: "maxPool2d",
  castPolicy: "none",
  shape: ([x], options) => [outputOf("maxPool2d", x as TensorSpec, options)],
  forward({ target, inputs, outputs, attributes }) {
    const input = inputs[0] as Operand;
    const out = outputs[0] as Operand;
    target.launch(
      kernels.maxPool2d({ input, out }, attributesOf("maxPool2d", input.shape, attributes)),
    );
  },
  backward: ({ inputs, gradients, attributes }) => [
    maxPool2dBackward.apply([inputs[0] as Tensor, gradients[0] as Tensor], attributes),
  ],
});

/** Maximum of each window of an input [batch, height, width, channels]; NaN wins, as in torch. */
export const maxPool2d: Pool<PoolOptions> = poolOf(maxPool2dOp, {});

const maxPool2dBackward: Op<PoolOptions> = defineOp<PoolOptions>({
  name: "maxPool2dBackward",
  castPolicy: "none",
  shape: ([x]) => [x as TensorSpec],
  forward({ target, inputs, outputs, attributes }) {
    const [input, outGradient] = inputs as [Operand, Operand];
    const inputGradient = outputs[0] as Operand;
    target.launch(
      kernels.maxPool2dBackward(
        { input, outGradient, inputGradient },
        attributesOf("maxPool2d", input.shape, attributes),
      ),
    );
  },
  // Maxima stay where they are: the gradient depends on the input by no slope.
  backward: ({ inputs, gradients, attributes }) => [
    undefined,
    maxPool2dSelect.apply([inputs[0] as Tensor, gradients[0] as Tensor], attributes),
  ],
});

/** [x, values]: the values at the places of the maxima of x, one for each window. */
const maxPool2dSelect: Op<PoolOptions> = defineOp<PoolOptions>({
  name: "maxPool2dSelect",
  castPolicy: "none",
  shape: ([x, values], options) => [
    {
      ...outputOf("maxPool2d", x as TensorSpec, options),
      dtype: (values as TensorSpec).dtype,
    },
  ],
  forward({ target, inputs, outputs, attributes }) {
    const [input, values] = inputs as [Operand, Operand];
    const out = outputs[0] as Operand;
    target.launch(
      kernels.maxPool2dSelect(
        { input, values, out },
        attributesOf("maxPool2d", input.shape, attributes),
      ),
    );
  },
  backward: ({ inputs, gradients, attributes }) => [
    undefined,
    maxPool2dBackward.apply([inputs[0] as Tensor, gradients[0] as Tensor], attributes),
  ],
});

const counting = { countIncludePad: kinds.optional(kinds.flag) };

const avgPool2dOp: Op<AvgPoolOptions> = defineOp<AvgPoolOptions>({
  name: "avgPool2d",
  castPolicy: "none",
  shape: ([x], options) => [outputOf("avgPool2d", x as TensorSpec, options)],
  forward({ target, inputs, outputs, attributes }) {
    const input = inputs[0] as Operand;
    const out = outputs[0] as Operand;
    target.launch(
      kernels.avgPool2d({ input, out }, attributesOf("avgPool2d", input.shape, attributes)),
    );
  },
  backward: ({ inputs, gradients, attributes }) => [
    avgPool2dBackward.apply([gradients[0] as Tensor], {
      shape: (inputs[0] as Tensor).shape,
      options: attributes,
    }),
  ],
});

/** Mean of each window of an input [batch, height, width, channels]; padding counts as zeros, as in torch, unless told otherwise. */
export const avgPool2d: Pool<AvgPoolOptions> = poolOf(avgPool2dOp, counting);

const avgPool2dBackward: Op<{ shape: readonly number[]; options: AvgPoolOptions }> = defineOp<{
  shape: readonly number[];
  options: AvgPoolOptions;
}>({
  name: "avgPool2dBackward",
  castPolicy: "none",
  shape: ([g], { shape }) => [{ shape, dtype: (g as TensorSpec).dtype }],
  forward({ target, inputs, outputs, attributes: { shape, options } }) {
    const outGradient = inputs[0] as Operand;
    const inputGradient = outputs[0] as Operand;
    target.launch(
      kernels.avgPool2dBackward(
        { outGradient, inputGradient },
        attributesOf("avgPool2d", shape, options),
      ),
    );
  },
  backward: ({ gradients, attributes: { options } }) => [
    avgPool2d(gradients[0] as Tensor, options),
  ],
});

/** Windows of {@link maxPool1d}. */
export interface Pool1dOptions {
  /** Size of a window. */
  readonly window: number;
  /** Default: the window. */
  readonly stride?: number;
  /** Default 0. */
  readonly padding?: number;
  /** As for {@link maxPool2d}. Default false. */
  readonly ceilMode?: boolean | undefined;
}

/** Windows of {@link avgPool1d}. */
export interface AvgPool1dOptions extends Pool1dOptions {
  /** As for {@link avgPool2d}. Default true. */
  readonly countIncludePad?: boolean;
}

type Pool1d<O extends Pool1dOptions> = (x: Tensor, options: O) => Tensor;

/** A pool of images of one row. */
const pool1d = <O extends Pool1dOptions>(
  name: string,
  pool: (x: Tensor, options: PoolOptions) => Tensor,
  more: kinds.ParameterKinds,
): Pool1d<O> =>
  checked(
    name,
    {
      x: kinds.tensor,
      options: kinds.options({
        window: kinds.integer,
        stride: kinds.optional(kinds.integer),
        padding: kinds.optional(kinds.integer),
        ceilMode: kinds.optional(kinds.flag),
        ...more,
      }),
    },
    (x: Tensor, { window, stride = window, padding = 0, ...others }: O): Tensor => {
      if (x.rank !== 3)
        throw new ShapeError(`${name} needs an input [batch, length, channels], not [${x.shape}]`);
      const y = pool(x.reshape(x.shape.toSpliced(1, 0, 1)), {
        ...others,
        window: [1, window],
        stride: [1, stride],
        padding: [0, padding],
      });
      return y.reshape(y.shape.toSpliced(1, 1));
    },
  );

/** Maximum of each window of an input [batch, length, channels]; NaN wins, as in torch. */
export const maxPool1d: Pool1d<Pool1dOptions> = pool1d("maxPool1d", maxPool2d, {});

/** Mean of each window of an input [batch, length, channels]; padding counts as zeros, as in torch, unless told otherwise. */
export const avgPool1d: Pool1d<AvgPool1dOptions> = pool1d("avgPool1d", avgPool2d, counting);
