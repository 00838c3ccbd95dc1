import { isInteger } from "@halfstep/formats/dtypes";
import * as kernels from "@halfstep/kernels";
import { checked } from "../arguments/arguments.js";
import { either, number, optional, tensor } from "../arguments/kinds.js";
import type { BackwardContext } from "../autograd/grad-node.js";
import { castTo } from "../dispatch/cast.js";
import { type BinaryOp, type CallableOp, callable, type Op, type UnaryOp } from "../dispatch/op.js";
import type { Tensor } from "../tensor/tensor.js";
import { cut, type Pointwise, pointwise, unary, withFloats } from "./pointwise.js";

/** An op of a tensor and a number. */
type WithNumber = CallableOp<(x: Tensor, c: number) => Tensor, number>;

/** An op of two tensors, which broadcast, or of a tensor and a number. */
export interface ArithmeticOp extends Op<null> {
  (a: Tensor, b: Tensor | number): Tensor;
}

const withConstant = (
  expression: kernels.Expression,
  backward: (gradient: Tensor, constant: number) => Tensor,
): WithNumber => {
  const op = pointwise<number>({
    expression,
    castPolicy: "none",
    integers: true,
    wholeNumbers: (c) => [c],
    constants: (c) => [c],
    backward: ({ gradients, attributes }) => [backward(gradients[0] as Tensor, attributes)],
  });
  return callable(op, { x: tensor, c: number }, (x: Tensor, c: number) => op.apply([x], c));
};

const binary = (
  expression: kernels.Expression,
  backward: (context: BackwardContext<null>) => readonly (Tensor | undefined)[],
  more: Pick<Pointwise<null>, "integers"> = {},
): Op<null> => pointwise<null>({ ...more, expression, castPolicy: "promote", backward });

const integers = { integers: true } as const;

const arithmetic = (op: Op<null>, withNumber: (a: Tensor, b: number) => Tensor): ArithmeticOp =>
  callable(op, { a: tensor, b: either(tensor, number) }, (a: Tensor, b: Tensor | number) =>
    typeof b === "number" ? withNumber(a, b) : op.apply(withFloats(a, b), null),
  );

const only = ({ gradients }: BackwardContext<null>): Tensor => gradients[0] as Tensor;

/** x · c for a number c, which may change from step to step without a new plan. `mul` takes numbers, too. */
export const scale: WithNumber = withConstant(kernels.scale, (g, c) => g.mul(c));

/** x + c for a number c, which may change from step to step without a new plan. `add` takes numbers, too. */
export const addScalar: WithNumber = withConstant(kernels.addScalar, (g) => g);

/**
 * a + b, which broadcast as in NumPy; b may be a number. Floating dtypes promote: float16 and float32 give float32. Integers are added
 * modulo 2^32, and an int32 and a uint32 give an int32. Of a floating tensor and integers, such as a mask, the integers are cast.
 */
export const add: ArithmeticOp = arithmetic(
  binary(kernels.add, (context) => [only(context), only(context)], integers),
  (a, b) => addScalar.apply([a], b),
);

/** a − b, which broadcast as in NumPy; b may be a number. Dtypes are those of {@link add}. */
export const sub: ArithmeticOp = arithmetic(
  binary(kernels.sub, (context) => [only(context), only(context).neg()], integers),
  (a, b) => addScalar.apply([a], -b),
);

/** a · b, which broadcast as in NumPy; b may be a number. Dtypes are those of {@link add}: `x.mul(mask)` keeps the dtype of x. */
export const mul: ArithmeticOp = arithmetic(
  binary(
    kernels.mul,
    (context) => {
      const [a, b] = context.inputs as [Tensor, Tensor];
      return [
        context.needs[0] ? times(only(context), b) : undefined,
        context.needs[1] ? times(only(context), a) : undefined,
      ];
    },
    integers,
  ),
  (a, b) => scale.apply([a], b),
);

/** gradient · factor. The gradient of a scaled loss begins as one times the scale, which needs no launch. */
function times(gradient: Tensor, factor: Tensor): Tensor {
  const isFactor =
    gradient.storage === gradient.runtime.one.storage &&
    factor.dtype === gradient.dtype &&
    factor.shape.length === gradient.shape.length &&
    factor.size === 1;
  return isFactor ? factor : gradient.mul(factor);
}

const divOp: Op<null> = binary(kernels.div, (context) => {
  const [, b] = context.inputs as [Tensor, Tensor];
  const quotient = context.outputs[0] as Tensor;
  const scaled = only(context).div(b);
  return [scaled, context.needs[1] ? scaled.mul(quotient).neg() : undefined];
});

/** Integers as the float32 in which they are divided. */
const divisible = (x: Tensor): Tensor => (isInteger(x.dtype) ? castTo(x, "float32") : x);

/**
 * a / b, which broadcast as in NumPy; b may be a number, whose reciprocal is then a factor. Floating dtypes promote. Integers are divided
 * as float32, as in torch.
 */
export const div: ArithmeticOp = callable(
  divOp,
  { a: tensor, b: either(tensor, number) },
  (a: Tensor, b: Tensor | number) => {
    if (typeof b === "number") return scale.apply([divisible(a)], 1 / b);
    const [x, y] = withFloats(a, b);
    return divOp.apply([divisible(x), divisible(y)], null);
  },
);

/** √x; NaN below 0. */
export const sqrt: UnaryOp = unary(kernels.sqrt, "none", (g, _, y) => g.div(y.mul(2)));
/** x². */
export const square: UnaryOp = unary(kernels.square, "none", (g, x) => g.mul(x.mul(2)), integers);
/** |x|. The gradient at NaN is NaN, where torch's is 0: the scaler must see that an activation overflowed. */
export const abs: UnaryOp = unary(kernels.abs, "none", (g, x) => g.mul(sign(x)), integers);

/** −1, 0 or 1; NaN stays NaN. */
export const sign: UnaryOp = unary(kernels.sign, "none", cut, integers);
/** The largest whole number that is not above x. Its gradient is 0. */
export const floor: UnaryOp = unary(kernels.floor, "none", cut);
/** The smallest whole number that is not below x. Its gradient is 0. */
export const ceil: UnaryOp = unary(kernels.ceil, "none", cut);

/** The nearest whole number; of two that are equally near, the even one. */
export const round: UnaryOp = unary(kernels.round, "none", cut);

/**
 * The gradient goes to the operand that was taken, half to each of two equal operands, and to both where either is NaN, as in torch:
 * so NaN reaches the gradients.
 */
function extremum(expression: kernels.Expression, slope: kernels.Expression): BinaryOp {
  const backward: Op<null> = pointwise<null>({
    expression: slope,
    castPolicy: "none",
    backward({ inputs, gradients, needs }) {
      const [, a, b] = inputs as [Tensor, Tensor, Tensor];
      const v = gradients[0] as Tensor;
      return [needs[0] ? backward.apply([v, a, b], null) : undefined, undefined, undefined];
    },
  });
  const op = binary(
    expression,
    (context) => {
      const [a, b] = context.inputs as [Tensor, Tensor];
      const g = only(context);
      return [
        context.needs[0] ? backward.apply([g, a, b], null) : undefined,
        context.needs[1] ? backward.apply([g, b, a], null) : undefined,
      ];
    },
    integers,
  );
  return callable(op, { a: tensor, b: tensor }, (a: Tensor, b: Tensor) =>
    op.apply(ofOneDType(...withFloats(a, b)), null),
  );
}

/** Of an int32 and a uint32 the latter as int32: saturated, as the extremum would be. */
const ofOneDType = (a: Tensor, b: Tensor): readonly Tensor[] =>
  [a, b].map((x) =>
    x.dtype === "uint32" && (a.dtype === "int32" || b.dtype === "int32") ? castTo(x, "int32") : x,
  );

/** The larger operand; NaN if either is. */
export const maximum: BinaryOp = extremum(kernels.maximum, kernels.maximumBackward);

/** The smaller operand; NaN if either is. */
export const minimum: BinaryOp = extremum(kernels.minimum, kernels.minimumBackward);

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

const withValue = (op: Op<number>): AddedTerm =>
  checked(
    op.name,
    { x: tensor, a: tensor, b: tensor, value: optional(number) },
    (x: Tensor, a: Tensor, b: Tensor, value = 1): Tensor => op.apply([x, a, b], value),
  );

type AddedTerm = (x: Tensor, a: Tensor, b: Tensor, value?: number) => Tensor;

/** x + value · a · b, which broadcast; the value is 1 by default. */
export const addcmul: AddedTerm = withValue(addcmulOp);

/** x + value · a / b, which broadcast; the value is 1 by default. */
export const addcdiv: AddedTerm = withValue(addcdivOp);
