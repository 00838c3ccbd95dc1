import * as kernels from "@halfstep/kernels";
import type { BackwardContext, Op } from "../op.js";
import type { Tensor } from "../tensor.js";
import { pointwise, unary } from "./pointwise.js";

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
    context.needs[0] ? only(context).mul(b) : undefined,
    context.needs[1] ? only(context).mul(a) : undefined,
  ];
});

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

export const exp: Op<null> = unary(kernels.exp, "float32", (g, _, y) => g.mul(y));
export const log: Op<null> = unary(kernels.log, "float32", (g, x) => g.div(x));
export const sqrt: Op<null> = unary(kernels.sqrt, "none", (g, _, y) => g.div(y.mul(2)));
export const square: Op<null> = unary(kernels.square, "none", (g, x) => g.mul(x.mul(2)));
export const reciprocal: Op<null> = unary(kernels.reciprocal, "float32", (g, _, y) =>
  g.mul(y.square()).neg(),
);
export const tanh: Op<null> = unary(kernels.tanh, "none", (g, _, y) =>
  g.mul(y.square().neg().add(1)),
);
export const sigmoid: Op<null> = unary(kernels.sigmoid, "none", (g, _, y) =>
  g.mul(y.mul(y.neg().add(1))),
);

/** max(x, 0); NaN stays NaN. */
export const relu: Op<null> = unary(kernels.relu, "none", (g, _, y) => reluBackward([g, y], null));

/** gradient where y > 0, else 0. */
const reluBackward: Op<null> = pointwise<null>({
  expression: kernels.reluBackward,
  castPolicy: "none",
  backward: ({ inputs, gradients }) => [
    reluBackward([gradients[0] as Tensor, inputs[1] as Tensor], null),
    undefined,
  ],
});
