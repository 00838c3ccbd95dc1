import { DTypeError } from "@halfstep/autocast";
import { isFloating } from "@halfstep/formats/dtypes";
import * as kernels from "@halfstep/kernels";
import { checked } from "../arguments/arguments.js";
import * as kinds from "../arguments/kinds.js";
import { isGradEnabled } from "../autograd/grad-mode.js";
import { castTo } from "../dispatch/cast.js";
import { composite } from "../dispatch/composite.js";
import { defineOp, type Op, type Operand, type TensorSpec } from "../dispatch/op.js";
import { ShapeError } from "../errors.js";
import type { Tensor } from "../tensor/tensor.js";
import { mean, sum } from "./sums.js";

type NormName = "layerNorm" | "groupNorm" | "rmsNorm";

/** The attributes of normalizations. */
export interface NormAttributes {
  readonly shape: kernels.NormShape;
  readonly eps: number;
  /** Which parameters come after the input. */
  readonly hasWeight: boolean;
  readonly hasBias: boolean;
}

/** Splits an op's operands into the input, the parameters and the rest. */
function partsOf<T>(
  [x, ...rest]: readonly T[],
  { hasWeight, hasBias }: NormAttributes,
): { x: T; weight: T | undefined; bias: T | undefined; more: readonly T[] } {
  const more = [...rest];
  return {
    x: x as T,
    weight: hasWeight ? more.shift() : undefined,
    bias: hasBias ? more.shift() : undefined,
    more,
  };
}

/** The normalised tensor in the input's dtype, and the statistics of each group, float32: the mean, if any, and 1 / deviation. */
const normOp = (name: NormName): Op<NormAttributes> => {
  const isCentred = name !== "rmsNorm";
  const backward = backwardOp(name);
  return defineOp<NormAttributes>({
    name,
    castPolicy: "float32",
    shape([x], { shape: { batch, groups } }) {
      const statistic: TensorSpec = { shape: [batch, groups], dtype: "float32" };
      return [x as TensorSpec, statistic, ...(isCentred ? [statistic] : [])];
    },
    forward({ target, inputs, outputs, attributes }) {
      const { shape, eps } = attributes;
      const { x: input, weight, bias } = partsOf(inputs, attributes);
      const [out, rstd, mean] = outputs as [Operand, Operand, Operand | undefined];
      kernels.norm(target, { input, mean, rstd, weight, bias, out }, { ...shape, eps });
    },
    backward({ inputs, outputs, gradients, attributes }) {
      const { x, weight, bias } = partsOf(inputs, attributes);
      const g = gradients[0] as Tensor;
      if (isGradEnabled()) return composedBackward({ x, weight, bias, g }, attributes, isCentred);
      return backward.applyAll([...inputs, g, ...outputs.slice(1)], attributes);
    },
  });
};

const backwardOp = (name: NormName): Op<NormAttributes> =>
  defineOp<NormAttributes>({
    name: `${name}Backward`,
    castPolicy: "float32",
    shape(inputs, attributes) {
      const { x, weight, bias } = partsOf(inputs, attributes);
      return [x, weight, bias].filter((spec) => spec !== undefined);
    },
    forward({ target, inputs, outputs, attributes }) {
      const { x: input, weight, more } = partsOf(inputs, attributes);
      const [outGradient, rstd, mean] = more as [Operand, Operand, Operand | undefined];
      const gradients = partsOf(outputs, attributes);
      kernels.normBackward(
        target,
        {
          input,
          mean,
          rstd,
          weight,
          outGradient,
          inputGradient: gradients.x,
          weightGradient: gradients.weight,
          biasGradient: gradients.bias,
        },
        attributes.shape,
      );
    },
    backward: "none",
  });

interface BackwardParts {
  readonly x: Tensor;
  readonly weight: Tensor | undefined;
  readonly bias: Tensor | undefined;
  readonly g: Tensor;
}

/** The same gradients written in ops, so that they can be differentiated again. */
function composedBackward(
  { x, weight, bias, g }: BackwardParts,
  { shape: { batch, pixels, groups, width }, eps }: NormAttributes,
  isCentred: boolean,
): readonly Tensor[] {
  const grouped = (tensor: Tensor): Tensor =>
    castTo(tensor, "float32").reshape([batch, pixels, groups, width]);
  const byChannel = (tensor: Tensor): Tensor => castTo(tensor, "float32").reshape([groups, width]);
  const average = (tensor: Tensor): Tensor => mean(tensor, [1, 3], { keepDimensions: true });
  const input = grouped(x);
  const gradient = grouped(g);
  const centred = isCentred ? input.sub(average(input)) : input;
  const deviation = average(centred.square()).add(eps).sqrt();
  const normalized = centred.div(deviation);
  const h = weight ? gradient.mul(byChannel(weight)) : gradient;
  const projected = normalized.mul(average(h.mul(normalized)));
  const inner = (isCentred ? h.sub(average(h)) : h).sub(projected);
  return [
    inner.div(deviation).reshape(x.shape),
    ...(weight ? [sum(gradient.mul(normalized), [0, 1]).reshape(weight.shape)] : []),
    ...(bias ? [sum(gradient, [0, 1]).reshape(bias.shape)] : []),
  ];
}

export const layerNormOp: Op<NormAttributes> = normOp("layerNorm");
const groupNormOp = normOp("groupNorm");
export const rmsNormOp: Op<NormAttributes> = normOp("rmsNorm");

const product = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1);

function requireParameters(
  name: NormName,
  x: Tensor,
  shape: readonly number[],
  parameters: readonly (Tensor | undefined)[],
): void {
  if (!isFloating(x.dtype)) throw new DTypeError(`${name} needs a floating tensor, not ${x.dtype}`);
  for (const parameter of parameters)
    if (parameter && parameter.shape.join() !== shape.join())
      throw new ShapeError(
        `${name}: weight and bias need the shape [${shape}], not [${parameter.shape}]`,
      );
}

/** The norm of lines without elements, from which all operands have gradients. */
function ofNothing(x: Tensor, weight: Tensor | undefined, bias: Tensor | undefined): Tensor {
  const scaled = weight ? x.mul(weight) : x.mul(1);
  return castTo(bias ? scaled.add(bias) : scaled, x.dtype);
}

/** Normalises over the last dimensions, which are those of `normalizedShape`. */
function overLast(
  op: Op<NormAttributes>,
  x: Tensor,
  normalizedShape: number | readonly number[],
  [weight, bias]: readonly (Tensor | undefined)[],
  eps: number,
): Tensor {
  const name = op.name as NormName;
  const shape = typeof normalizedShape === "number" ? [normalizedShape] : normalizedShape;
  if (shape.length === 0 || x.shape.slice(-shape.length).join() !== shape.join())
    throw new ShapeError(
      `${name}: the input [${x.shape}] does not end in the normalised shape [${shape}]`,
    );
  requireParameters(name, x, shape, [weight, bias]);
  const width = product(shape);
  if (width === 0)
    return composite({ name, castPolicy: op.castPolicy }, ofNothing)(x, weight, bias);
  return op.apply(
    [x, weight, bias].filter((tensor) => tensor !== undefined),
    {
      shape: { batch: x.size / width, pixels: 1, groups: 1, width },
      eps,
      hasWeight: weight !== undefined,
      hasBias: bias !== undefined,
    },
  );
}

const epsKinds = kinds.optionals({ eps: kinds.number });

/** Options of {@link layerNorm} and {@link groupNorm}. */
export interface NormOptions {
  /** Added to the variance. Default 1e-5. */
  readonly eps?: number;
}

/**
 * (x − mean) / √(variance + eps) · weight + bias over the last dimensions, which are those of `normalizedShape`, as
 * torch.nn.functional.layer_norm. Statistics are float32 whatever the dtype.
 */
export const layerNorm: (
  x: Tensor,
  normalizedShape: number | readonly number[],
  weight?: Tensor,
  bias?: Tensor,
  options?: NormOptions,
) => Tensor = checked(
  "layerNorm",
  {
    x: kinds.tensor,
    normalizedShape: kinds.axes,
    weight: kinds.optional(kinds.tensor),
    bias: kinds.optional(kinds.tensor),
    options: epsKinds,
  },
  (
    x: Tensor,
    normalizedShape: number | readonly number[],
    weight?: Tensor,
    bias?: Tensor,
    { eps = 1e-5 }: NormOptions = {},
  ): Tensor => {
    return overLast(layerNormOp, x, normalizedShape, [weight, bias], eps);
  },
);

/** Options of {@link rmsNorm}. */
export interface RmsNormOptions {
  /** Added to the mean square. Default 2^-23, the spacing of float32 at 1, as in torch. */
  readonly eps?: number;
}

/**
 * x / √(mean of squares + eps) · weight over the last dimensions, which are those of `normalizedShape`, as
 * torch.nn.functional.rms_norm. Sums are float32 whatever the dtype.
 */
export const rmsNorm: (
  x: Tensor,
  normalizedShape: number | readonly number[],
  weight?: Tensor,
  options?: RmsNormOptions,
) => Tensor = checked(
  "rmsNorm",
  {
    x: kinds.tensor,
    normalizedShape: kinds.axes,
    weight: kinds.optional(kinds.tensor),
    options: epsKinds,
  },
  (
    x: Tensor,
    normalizedShape: number | readonly number[],
    weight?: Tensor,
    { eps = 2 ** -23 }: RmsNormOptions = {},
  ): Tensor => {
    return overLast(rmsNormOp, x, normalizedShape, [weight, undefined], eps);
  },
);

/**
 * (x − mean) / √(variance + eps) · weight + bias of [batch, ..., channels], over each of `groups` groups of neighbouring
 * channels, as torch.nn.functional.group_norm with channels last. Statistics are float32 whatever the dtype.
 *
 * @param weight [channels]
 * @param bias [channels]
 */
export const groupNorm: (
  x: Tensor,
  groups: number,
  weight?: Tensor,
  bias?: Tensor,
  options?: NormOptions,
) => Tensor = checked(
  "groupNorm",
  {
    x: kinds.tensor,
    groups: kinds.number,
    weight: kinds.optional(kinds.tensor),
    bias: kinds.optional(kinds.tensor),
    options: epsKinds,
  },
  (
    x: Tensor,
    groups: number,
    weight?: Tensor,
    bias?: Tensor,
    { eps = 1e-5 }: NormOptions = {},
  ): Tensor => {
    const channels = x.shape.at(-1) ?? 0;
    if (x.rank < 2 || !Number.isInteger(groups) || groups < 1 || channels % groups !== 0)
      throw new ShapeError(
        `groupNorm: an input [batch, ..., channels] of shape [${x.shape}] cannot be divided into ${groups} groups of channels`,
      );
    requireParameters("groupNorm", x, [channels], [weight, bias]);
    if (channels === 0) throw new ShapeError(`groupNorm: [${x.shape}] has no channels`);
    const pixels = product(x.shape.slice(1, -1));
    if (pixels === 0)
      throw new ShapeError(`groupNorm: an image of shape [${x.shape}] has no pixels`);
    return groupNormOp.apply(
      [x, weight, bias].filter((tensor) => tensor !== undefined),
      {
        shape: { batch: x.shape[0] as number, pixels, groups, width: channels / groups },
        eps,
        hasWeight: weight !== undefined,
        hasBias: bias !== undefined,
      },
    );
  },
);
