import { type CastPolicy, DTypeError } from "@halfstep/autocast";
import * as kernels from "@halfstep/kernels";
import { ShapeError } from "../errors.js";
import {
  type BackwardContext,
  defineOp,
  type ForwardContext,
  type Op,
  type TensorSpec,
} from "../op.js";
import type { Tensor } from "../tensor.js";
import { sumTo } from "./reduce.js";

type Gradients = readonly (Tensor | undefined)[];

/** The shape to which shapes broadcast together, as in NumPy. */
export function broadcastShapes(op: string, a: readonly number[], b: readonly number[]): number[] {
  const rank = Math.max(a.length, b.length);
  return Array.from({ length: rank }, (_, d) => {
    const x = a[a.length - rank + d] ?? 1;
    const y = b[b.length - rank + d] ?? 1;
    if (x !== y && x !== 1 && y !== 1)
      throw new ShapeError(
        `${op}: shapes [${a}] and [${b}] do not broadcast: sizes ${x} and ${y} differ`,
      );
    return x === 1 ? y : x;
  });
}

function floating(op: string, spec: TensorSpec): TensorSpec {
  if (spec.dtype === "int32" || spec.dtype === "uint32")
    throw new DTypeError(`${op} needs a floating tensor, not ${spec.dtype}`);
  return spec;
}

function forwardOf(expression: kernels.Expression) {
  return (
    { target, inputs, outputs }: ForwardContext<unknown>,
    constants: readonly number[] = [],
  ): void => {
    const [out] = outputs as [ForwardContext<unknown>["outputs"][number]];
    target.launch(kernels.elementwise(expression, inputs, out, constants));
  };
}

function unary(
  expression: kernels.Expression,
  castPolicy: CastPolicy,
  backward: (gradient: Tensor, x: Tensor, y: Tensor) => Tensor,
): Op<null> {
  const forward = forwardOf(expression);
  return defineOp<null>({
    name: expression.name,
    castPolicy,
    shape: ([x]) => [floating(expression.name, x as TensorSpec)],
    forward: (context) => forward(context),
    backward: ({ inputs, outputs, gradients }) => [
      backward(gradients[0] as Tensor, inputs[0] as Tensor, outputs[0] as Tensor),
    ],
  });
}

function unaryWithConstant(
  expression: kernels.Expression,
  backward: (gradient: Tensor, constant: number) => Tensor,
): Op<number> {
  const forward = forwardOf(expression);
  return defineOp<number>({
    name: expression.name,
    castPolicy: "none",
    shape: ([x]) => [floating(expression.name, x as TensorSpec)],
    forward: (context) => forward(context, [context.attributes]),
    backward: ({ gradients, attributes }) => [backward(gradients[0] as Tensor, attributes)],
  });
}

function binary(
  expression: kernels.Expression,
  backward: (context: BackwardContext<null>) => Gradients,
): Op<null> {
  const forward = forwardOf(expression);
  const { name } = expression;
  return defineOp<null>({
    name,
    castPolicy: "promote",
    shape([a, b]) {
      const { shape: x, dtype } = floating(name, a as TensorSpec);
      const { shape: y, dtype: other } = floating(name, b as TensorSpec);
      if (dtype !== other)
        throw new DTypeError(`${name}: operands are ${dtype} and ${other}; cast one with to()`);
      return [{ shape: broadcastShapes(name, x, y), dtype }];
    },
    forward: (context) => forward(context),
    backward(context) {
      return backward(context).map((gradient, i) =>
        gradient && context.needs[i]
          ? sumTo(gradient, (context.inputs[i] as Tensor).shape)
          : undefined,
      );
    },
  });
}

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
export const scale: Op<number> = unaryWithConstant(kernels.scale, (g, c) => g.mul(c));

/** x + c for a number c, which may change from step to step without a new plan. */
export const addScalar: Op<number> = unaryWithConstant(kernels.addScalar, (g) => g);

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

const reluForward = forwardOf(kernels.reluBackward);

/** gradient where y > 0, else 0. */
const reluBackward: Op<null> = defineOp<null>({
  name: "reluBackward",
  castPolicy: "none",
  shape: ([gradient]) => [gradient as TensorSpec],
  forward: (context) => reluForward(context),
  backward: ({ inputs, gradients }) => [
    reluBackward([gradients[0] as Tensor, inputs[1] as Tensor], null),
    undefined,
  ],
});
