import * as kernels from "@halfstep/kernels";
import type { BackwardContext, Op } from "../op.js";
import type { Tensor } from "../tensor.js";
import { cut, pointwise, unary } from "./pointwise.js";

const withConstant = (
  expression: kernels.Expression,
  backward: (gradient: Tensor, constant: number) => Tensor,
): Op<number> =>
  pointwise<number>({
    expression,
    castPolicy: "none",
    constants: (c) => [c],
    backward: ({ gradients, attributes }) => [backward(gradients[0] as Tensor, attributes)],
  });

const binary = (
  expression: kernels.Expression,
  backward: (context: BackwardContext<null>) => readonly (Tensor | undefined)[],
): Op<null> => pointwise<null>({ expression, castPolicy: "promote", backward });

const only = ({ gradients }: BackwardContext<null>): Tensor => gradients[0] as Tensor;

export const add: Op<null> = binary(kernels.add, (context) => [only(context), only(context)]);

export const sub: Op<null> = binary(kernels.sub, (context) => [only(context), only(context).neg()]);

export const mul: Op<null> = binary(kernels.mul, (context) => {
  const [a, b] = context.inputs as [Tensor, Tensor];
  return [
    context.needs[0] ? times(only(context), b) : undefined,
    context.needs[1] ? times(only(context), a) : undefined,
  ];
});

/** gradient · factor. That of a scaled loss begins as one times the scale, which is no launch. */
function times(gradient: Tensor, factor: Tensor): Tensor {
  const isFactor =
    gradient.storage === gradient.runtime.one.storage &&
    factor.dtype === gradient.dtype &&
    factor.shape.length === gradient.shape.length &&
    factor.size === 1;
  return isFactor ? factor : gradient.mul(factor);
}

export const div: Op<null> = binary(kernels.div, (context) => {
  const [, b] = context.inputs as [Tensor, Tensor];
  const quotient = context.outputs[0] as Tensor;
  const scaled = only(context).div(b);
  return [scaled, context.needs[1] ? scaled.mul(quotient).neg() : undefined];
});

/** x · c for a number c, which may change from step to step without a new plan. */
export const scale: Op<number> = withConstant(kernels.scale, (g, c) => g.mul(c));

/** x + c for a number c, which may change from step to step without a new plan. */
export const addScalar: Op<number> = withConstant(kernels.addScalar, (g) => g);

export const sqrt: Op<null> = unary(kernels.sqrt, "none", (g, _, y) => g.div(y.mul(2)));
export const square: Op<null> = unary(kernels.square, "none", (g, x) => g.mul(x.mul(2)));
/** |x|. The gradient at NaN is NaN, where torch's is 0: an activation that was lost must reach the scaler. */
export const abs: Op<null> = unary(kernels.abs, "none", (g, x) => g.mul(sign([x], null)));

/** −1, 0 or 1; NaN stays NaN. */
export const sign: Op<null> = unary(kernels.sign, "none", cut);
export const floor: Op<null> = unary(kernels.floor, "none", cut);
export const ceil: Op<null> = unary(kernels.ceil, "none", cut);

/** The nearest whole number; of two that are equally near, the even one. */
export const round: Op<null> = unary(kernels.round, "none", cut);

/**
 * Gradients go to the operand that was taken; of two that are equal, half to each; to both where either is NaN, as in torch, so that
 * NaN is not lost on its way back.
 */
function extremum(expression: kernels.Expression, slope: kernels.Expression): Op<null> {
  const backward: Op<null> = pointwise<null>({
    expression: slope,
    castPolicy: "none",
    backward({ inputs, gradients, needs }) {
      const [, a, b] = inputs as [Tensor, Tensor, Tensor];
      const v = gradients[0] as Tensor;
      return [needs[0] ? backward([v, a, b], null) : undefined, undefined, undefined];
    },
  });
  return binary(expression, (context) => {
    const [a, b] = context.inputs as [Tensor, Tensor];
    const g = only(context);
    return [
      context.needs[0] ? backward([g, a, b], null) : undefined,
      context.needs[1] ? backward([g, b, a], null) : undefined,
    ];
  });
}

/** The larger operand; NaN if either is. */
export const maximum: Op<null> = extremum(kernels.maximum, kernels.maximumBackward);

/** The smaller operand; NaN if either is. */
export const minimum: Op<null> = extremum(kernels.minimum, kernels.minimumBackward);

const addcmulOp: Op<number> = pointwise<number>({
  expression: kernels.addcmul,
  castPolicy: "promote",
  constants: (value) => [value],
  backward({ inputs, gradients, needs, attributes: value }) {
    const [, a, b] = inputs as [Tensor, Tensor, Tensor];
    const g = gradients[0] as Tensor;
    return [
      g,
      needs[1] ? g.mul(b).mul(value) : undefined,
      needs[2] ? g.mul(a).mul(value) : undefined,
    ];
  },
});

const addcdivOp: Op<number> = pointwise<number>({
  expression: kernels.addcdiv,
  castPolicy: "promote",
  constants: (value) => [value],
  backward({ inputs, gradients, needs, attributes: value }) {
    const [, a, b] = inputs as [Tensor, Tensor, Tensor];
    const g = gradients[0] as Tensor;
    const scaled = g.div(b).mul(value);
    return [g, needs[1] ? scaled : undefined, needs[2] ? scaled.mul(a.div(b)).neg() : undefined];
  },
});

/** x + value · a · b */
export const addcmul = (x: Tensor, a: Tensor, b: Tensor, value = 1): Tensor =>
  addcmulOp([x, a, b], value);

/** x + value · a / b */
export const addcdiv = (x: Tensor, a: Tensor, b: Tensor, value = 1): Tensor =>
  addcdivOp([x, a, b], value);
