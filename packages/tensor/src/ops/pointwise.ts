import { type CastPolicy, DTypeError } from "@halfstep/autocast";
import type { DType } from "@halfstep/device";
import { isFloat8, isInteger } from "@halfstep/formats/dtypes";
import { type Expression, elementwise } from "@halfstep/kernels";
import { tensor } from "../arguments/kinds.js";
import type { BackwardContext } from "../autograd/grad-node.js";
import { castTo } from "../dispatch/cast.js";
import {
  callable,
  defineOp,
  type Op,
  type Operand,
  type TensorSpec,
  type UnaryOp,
} from "../dispatch/op.js";
import { ShapeError } from "../errors.js";
import { isSameShape } from "../shapes.js";
import type { Tensor } from "../tensor/tensor.js";
import { floating } from "./floating.js";
import { sumTo } from "./sums.js";

/** An op that computes each element of its result from those at the same place of its operands, which broadcast. */
export interface Pointwise<A> {
  readonly expression: Expression;
  /** The name in plans and cast policies. Default: the expression's. */
  readonly name?: string;
  readonly castPolicy: CastPolicy;
  /**
   * Whether it also takes integers, and computes integers of them. An int32 and a uint32 give an int32.
   */
  readonly integers?: true;
  /** The numbers that have to be whole where the operands are integers. */
  wholeNumbers?(attributes: A): readonly number[];
  /** The expression's scalars, which may change from step to step without a new plan. */
  constants?(attributes: A): readonly number[];
  /** Gradients of the operands, in the shape of the result. */
  readonly backward: ((context: BackwardContext<A>) => readonly (Tensor | undefined)[]) | "none";
}

/** An op of floating operands of one dtype, which is that of the result; or of integers. */
export function pointwise<A>(definition: Pointwise<A>): Op<A> {
  const { expression, castPolicy, constants = () => [], backward } = definition;
  const { name = expression.name } = definition;
  return defineOp<A>({
    name,
    castPolicy,
    shape(inputs, attributes) {
      const dtype =
        definition.integers && inputs.every((spec) => isInteger(spec.dtype))
          ? integerDType(name, inputs, definition.wholeNumbers?.(attributes))
          : floatingDType(name, inputs);
      return [{ shape: broadcastAll(name, inputs), dtype }];
    },
    forward: ({ target, inputs, outputs, attributes }) =>
      target.launch(elementwise(expression, inputs, outputs[0] as Operand, constants(attributes))),
    backward: backward === "none" ? "none" : (context) => reduced(context, backward(context)),
    pointwise: { expression, scalars: constants },
  });
}

/** The one dtype of floating operands. */
function floatingDType(name: string, inputs: readonly TensorSpec[]): DType {
  for (const spec of inputs) floating(name, spec);
  const [first] = inputs as [TensorSpec];
  const other = inputs.find(({ dtype }) => dtype !== first.dtype);
  if (other)
    throw new DTypeError(
      `${name}: operands are ${first.dtype} and ${other.dtype}; cast one with to()`,
    );
  return first.dtype;
}

/** The dtype of a result of integers. */
export function integerDType(
  name: string,
  inputs: readonly TensorSpec[],
  numbers: readonly number[] = [],
): DType {
  const odd = numbers.find((number) => !Number.isInteger(number));
  if (odd !== undefined)
    throw new DTypeError(
      `${name}: ${odd} is no integer, and the tensor is ${inputs[0]?.dtype}: cast it with to("float32")`,
    );
  return inputs.some(({ dtype }) => dtype === "int32") ? "int32" : "uint32";
}

/**
 * A floating tensor and integers, such as a mask: the integers in the dtype of the floating one, as in torch. Others stay as they are.
 */
export function withFloats(a: Tensor, b: Tensor): readonly [Tensor, Tensor] {
  if (isInteger(a.dtype) === isInteger(b.dtype)) return [a, b];
  const { dtype } = isInteger(a.dtype) ? b : a;
  const common = isFloat8(dtype) ? "float32" : dtype;
  return isInteger(a.dtype) ? [castTo(a, common), b] : [a, castTo(b, common)];
}

/** Gradients of operands that were broadcast, summed over the dimensions that were repeated. */
export function reduced(
  { inputs, needs }: Pick<BackwardContext<unknown>, "inputs" | "needs">,
  gradients: readonly (Tensor | undefined)[],
): readonly (Tensor | undefined)[] {
  return gradients.map((gradient, i) =>
    gradient && needs[i] ? sumTo(gradient, (inputs[i] as Tensor).shape) : undefined,
  );
}

/** The shape to which the shapes of all operands broadcast together, as in NumPy. */
export function broadcastAll(op: string, specs: readonly TensorSpec[]): readonly number[] {
  const [first, ...others] = specs;
  let result = first?.shape ?? [];
  for (const { shape } of others) result = broadcastShapes(op, result, shape);
  return result;
}

export function broadcastShapes(
  op: string,
  a: readonly number[],
  b: readonly number[],
): readonly number[] {
  if (isSameShape(a, b)) return a;
  const rank = Math.max(a.length, b.length);
  const shape: number[] = [];
  for (let d = 0; d < rank; d++) {
    const x = a[a.length - rank + d] ?? 1;
    const y = b[b.length - rank + d] ?? 1;
    if (x !== y && x !== 1 && y !== 1)
      throw new ShapeError(
        `${op}: shapes [${a}] and [${b}] do not broadcast: sizes ${x} and ${y} differ`,
      );
    shape.push(x === 1 ? y : x);
  }
  return shape;
}

/** An op without attributes that is called with its one operand. */
export const ofOne = (op: Op<null>): UnaryOp =>
  callable(op, { x: tensor }, (x: Tensor) => op.apply([x], null));

/** An op of one operand without attributes, from its derivative. */
export const unary = (
  expression: Expression,
  castPolicy: CastPolicy,
  backward: (gradient: Tensor, x: Tensor, y: Tensor) => Tensor,
  more: Pick<Pointwise<null>, "integers" | "name"> = {},
): UnaryOp =>
  ofOne(
    pointwise<null>({
      ...more,
      expression,
      castPolicy,
      backward: ({ inputs, outputs, gradients }) => [
        backward(gradients[0] as Tensor, inputs[0] as Tensor, outputs[0] as Tensor),
      ],
    }),
  );

/** The gradient of a piecewise constant function: zeros, so that the input has a gradient. */
export const cut = (gradient: Tensor): Tensor => gradient.mul(0);
