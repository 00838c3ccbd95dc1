import { DTypeError } from "@halfstep/autocast";
import type { DType } from "@halfstep/device";
import { bfloat16, float16, float32 } from "@halfstep/formats";
import * as kernels from "@halfstep/kernels";
import { isFloating } from "../cast.js";
import { type BackwardContext, defineOp, type Op, type Operand, type TensorSpec } from "../op.js";
import type { Tensor } from "../tensor.js";
import { broadcastAll, reduced } from "./pointwise.js";

/** An op whose result is a mask: uint32, 1 where it holds and 0 elsewhere. */
const maskOf = (
  expression: kernels.Expression,
  { name = expression.name, check = () => {} }: MaskOptions = {},
): Op<number | null> =>
  defineOp<number | null>({
    name,
    castPolicy: "promote",
    shape(inputs) {
      check(name, inputs);
      return [{ shape: broadcastAll(name, inputs), dtype: "uint32" }];
    },
    forward: ({ target, inputs, outputs, attributes }) =>
      target.launch(
        kernels.elementwise(
          expression,
          inputs,
          outputs[0] as Operand,
          attributes === null ? [] : [attributes],
        ),
      ),
    backward: "none",
  });

interface MaskOptions {
  readonly name?: string;
  check?(op: string, inputs: readonly TensorSpec[]): void;
}

/** Float32 does not hold every integer: which of the two is meant to give way is the caller's choice. */
function comparable(op: string, inputs: readonly TensorSpec[]): void {
  const [a, b = a] = inputs as [TensorSpec, TensorSpec?];
  if (b && isFloating(a.dtype) !== isFloating(b.dtype))
    throw new DTypeError(
      `${op}: operands are ${a.dtype} and ${b.dtype}; cast one with to(), the integers to("float32") for instance`,
    );
}

type Comparison = (a: Tensor, b: Tensor | number) => Tensor;

function comparison(ofTensors: kernels.Expression, ofScalar: kernels.Expression): Comparison {
  const { name } = ofTensors;
  const [both, one] = [maskOf(ofTensors, { check: comparable }), maskOf(ofScalar, { name })];
  return (a, b) => (typeof b === "number" ? one([a], b) : both([a, b], null));
}

/**
 * a = b, as a mask (uint32). Comparisons broadcast, and are 0 where an operand is NaN, except `ne`. Integers are compared exactly, with
 * integers of either dtype and with every number; floats are compared with the float32 of a number.
 *
 * @throws DTypeError for an integer tensor and a floating one
 */
export const eq: Comparison = comparison(kernels.eq, kernels.eqScalar);
export const ne: Comparison = comparison(kernels.ne, kernels.neScalar);
export const lt: Comparison = comparison(kernels.lt, kernels.ltScalar);
export const le: Comparison = comparison(kernels.le, kernels.leScalar);
export const gt: Comparison = comparison(kernels.gt, kernels.gtScalar);
export const ge: Comparison = comparison(kernels.ge, kernels.geScalar);

/** Logical operations of masks, or of any numbers: what is not 0 is true. */
export const logicalAnd: Op<number | null> = maskOf(kernels.logicalAnd);
export const logicalOr: Op<number | null> = maskOf(kernels.logicalOr);
export const logicalXor: Op<number | null> = maskOf(kernels.logicalXor);
export const logicalNot: Op<number | null> = maskOf(kernels.logicalNot);

/** Where a number is NaN, infinite, or neither, as a mask. */
export const isNan: Op<number | null> = maskOf(kernels.isNan);
export const isInf: Op<number | null> = maskOf(kernels.isInf);
export const isFiniteNumber: Op<number | null> = maskOf(kernels.isFiniteNumber);

/** [mask, a, b]: a where the mask is not 0, b elsewhere, both of one dtype; gradients flow to each where it was taken, whatever the other is. */
export const where: Op<null> = defineOp<null>({
  name: "where",
  castPolicy: "promote",
  shape([mask, a, b]) {
    const [x, y] = [a as TensorSpec, b as TensorSpec];
    if (x.dtype !== y.dtype)
      throw new DTypeError(`where: operands are ${x.dtype} and ${y.dtype}; cast one with to()`);
    return [{ shape: broadcastAll("where", [mask as TensorSpec, x, y]), dtype: x.dtype }];
  },
  forward: ({ target, inputs, outputs }) =>
    target.launch(kernels.elementwise(kernels.where, inputs, outputs[0] as Operand)),
  backward(context) {
    const [mask] = context.inputs as [Tensor];
    const g = context.gradients[0] as Tensor;
    return reduced(context, [
      undefined,
      context.needs[1] ? keepWhere([g, mask], null) : undefined,
      context.needs[2] ? keepWhere([g, logicalNot([mask], null)], null) : undefined,
    ]);
  },
});

const masked = <A>(
  expression: kernels.Expression,
  constants: (attributes: A, dtype: DType) => readonly number[],
  backward: (gradient: Tensor, mask: Tensor) => Tensor,
): Op<A> =>
  defineOp<A>({
    name: expression.name,
    castPolicy: "none",
    shape([x, mask]) {
      const { dtype } = x as TensorSpec;
      return [{ shape: broadcastAll(expression.name, [x, mask] as TensorSpec[]), dtype }];
    },
    forward({ target, inputs, outputs, attributes }) {
      const [x, mask] = inputs as [Operand, Operand];
      const scalars = constants(attributes, x.dtype);
      target.launch(kernels.elementwise(expression, [x, mask], outputs[0] as Operand, scalars));
    },
    backward: (context: BackwardContext<A>) =>
      reduced(context, [
        backward(context.gradients[0] as Tensor, context.inputs[1] as Tensor),
        undefined,
      ]),
  });

/** [x, mask]: x where the mask is not 0, else 0, whatever x is there. */
export const keepWhere: Op<null> = masked<null>(
  kernels.keepWhere,
  () => [],
  (g, mask) => keepWhere([g, mask], null),
);

/** A finite number that a format cannot hold becomes the farthest that it can: −1e9 must not become −∞ in float16. */
function withinRange(value: number, dtype: DType): number {
  if (!isFloating(dtype)) return value; // The kernel brings it into the range of integers.
  const { max: limit } = (dtype === "float16" ? float16 : dtype === "bfloat16" ? bfloat16 : float32)
    .finfo;
  return Number.isFinite(value) ? Math.min(Math.max(value, -limit), limit) : value;
}

const fill = masked<number>(
  kernels.maskedFill,
  (value, dtype) => [withinRange(value, dtype)],
  (g, mask) => keepWhere([g, logicalNot([mask], null)], null),
);

/**
 * x with `value` where the mask is not 0. A finite value beyond the range of x's dtype becomes the end of that range; infinities
 * stay infinite. Among integers the value loses its fraction, and infinities, too, become the ends of the range.
 */
export const maskedFill = (x: Tensor, mask: Tensor, value: number): Tensor =>
  fill([x, mask], value);
