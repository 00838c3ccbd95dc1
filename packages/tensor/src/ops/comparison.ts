import { DTypeError } from "@halfstep/autocast";
import type { DType } from "@halfstep/device";
import { dtypes, isFloating } from "@halfstep/formats/dtypes";
import * as kernels from "@halfstep/kernels";
import { checked } from "../arguments/arguments.js";
import { either, number, tensor } from "../arguments/kinds.js";
import type { BackwardContext } from "../autograd/grad-node.js";
import {
  type CallableOp,
  callable,
  defineOp,
  type Op,
  type Operand,
  type TensorSpec,
} from "../dispatch/op.js";
import type { Runtime } from "../tensor/runtime.js";
import type { Tensor } from "../tensor/tensor.js";
import { broadcastAll, reduced } from "./pointwise.js";

type Mask = CallableOp<(x: Tensor) => Tensor, number | null>;
type MaskOfTwo = CallableOp<(a: Tensor, b: Tensor) => Tensor, number | null>;

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
        kernels.elementwise(expression, inputs, outputs[0] as Operand, scalarsOf(attributes)),
      ),
    backward: "none",
    pointwise: { expression, scalars: scalarsOf },
  });

/** The scalar of an op of one tensor and a number; none of an op of two tensors. */
export const scalarsOf = (attributes: number | null): readonly number[] =>
  attributes === null ? [] : [attributes];

interface MaskOptions {
  readonly name?: string;
  check?(op: string, inputs: readonly TensorSpec[]): void;
}

/** Float32 cannot represent every integer, so the caller has to cast one of the two. */
function comparable(op: string, inputs: readonly TensorSpec[]): void {
  const [a, b = a] = inputs as [TensorSpec, TensorSpec?];
  if (b && isFloating(a.dtype) !== isFloating(b.dtype))
    throw new DTypeError(
      `${op}: operands are ${a.dtype} and ${b.dtype}; cast one with to(), the integers to("float32") for instance`,
    );
}

const ofOne = (expression: kernels.Expression): Mask => {
  const op = maskOf(expression);
  return callable(op, { x: tensor }, (x: Tensor) => op.apply([x], null));
};

const ofTwo = (expression: kernels.Expression): MaskOfTwo => {
  const op = maskOf(expression);
  return callable(op, { a: tensor, b: tensor }, (a: Tensor, b: Tensor) => op.apply([a, b], null));
};

/** A comparison of two tensors, which broadcast, or of a tensor and a number. */
export type Comparison = (a: Tensor, b: Tensor | number) => Tensor;

function comparison(ofTensors: kernels.Expression, ofScalar: kernels.Expression): Comparison {
  const { name } = ofTensors;
  const [both, one] = [maskOf(ofTensors, { check: comparable }), maskOf(ofScalar, { name })];
  return checked(name, { a: tensor, b: either(tensor, number) }, (a, b) =>
    typeof b === "number" ? one.apply([a], b) : both.apply([a, b], null),
  );
}

/**
 * a = b, as a mask (uint32). Comparisons broadcast, and are 0 where an operand is NaN, except `ne`. Integers are compared exactly, with
 * integers of either dtype and with every number; floats are compared with the float32 of a number.
 *
 * @throws DTypeError for an integer tensor and a floating one
 */
export const eq: Comparison = comparison(kernels.eq, kernels.eqScalar);
/** Where a ≠ b, as a mask; 1 where an operand is NaN. */
export const ne: Comparison = comparison(kernels.ne, kernels.neScalar);
/** Where a < b, as a mask; 0 where an operand is NaN. */
export const lt: Comparison = comparison(kernels.lt, kernels.ltScalar);
/** Where a ≤ b, as a mask; 0 where an operand is NaN. */
export const le: Comparison = comparison(kernels.le, kernels.leScalar);
/** Where a > b, as a mask; 0 where an operand is NaN. */
export const gt: Comparison = comparison(kernels.gt, kernels.gtScalar);
/** Where a ≥ b, as a mask; 0 where an operand is NaN. */
export const ge: Comparison = comparison(kernels.ge, kernels.geScalar);

/** Where both are true, as a mask (uint32: 1 or 0). Operands are masks or any numbers: numbers other than 0 are true. */
export const logicalAnd: MaskOfTwo = ofTwo(kernels.logicalAnd);
/** Where one of two or both are true, as a mask. Numbers other than 0 are true. */
export const logicalOr: MaskOfTwo = ofTwo(kernels.logicalOr);
/** Where exactly one of two is true, as a mask. Numbers other than 0 are true. */
export const logicalXor: MaskOfTwo = ofTwo(kernels.logicalXor);
/** Where x is 0, as a mask. */
export const logicalNot: Mask = ofOne(kernels.logicalNot);

/** Where x is NaN, as a mask (uint32: 1 or 0). */
export const isNan: Mask = ofOne(kernels.isNan);
/** Where x is ∞ or −∞, as a mask. */
export const isInf: Mask = ofOne(kernels.isInf);
/** Where x is neither NaN nor infinite, as a mask. */
export const isFiniteNumber: Mask = ofOne(kernels.isFiniteNumber);

const whereOp: Op<null> = defineOp<null>({
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
  pointwise: { expression: kernels.where, scalars: () => [] },
  backward(context) {
    const [mask] = context.inputs as [Tensor];
    const g = context.gradients[0] as Tensor;
    return reduced(context, [
      undefined,
      context.needs[1] ? keepWhere(g, mask) : undefined,
      context.needs[2] ? keepWhere(g, logicalNot(mask)) : undefined,
    ]);
  },
});

/**
 * a where the mask is not 0, b elsewhere. Gradients flow to each operand only where it was taken, even if the other is NaN. All three
 * broadcast. A number has the dtype of the other operand, and float32 beside another number.
 *
 * @throws DTypeError for operands of two dtypes, and for a fraction beside integers
 */
export const where: CallableOp<
  (mask: Tensor, a: Tensor | number, b: Tensor | number) => Tensor,
  null
> = callable(
  whereOp,
  { mask: tensor, a: either(tensor, number), b: either(tensor, number) },
  (mask: Tensor, a: Tensor | number, b: Tensor | number) => {
    const dtype = typeof a === "number" ? (typeof b === "number" ? "float32" : b.dtype) : a.dtype;
    const operands = [a, b].map((each) =>
      typeof each === "number" ? scalarOf(mask.runtime, each, dtype) : each,
    );
    return whereOp.apply([mask, ...operands], null);
  },
);

function scalarOf(runtime: Runtime, value: number, dtype: DType): Tensor {
  if (!isFloating(dtype) && !Number.isInteger(value))
    throw new DTypeError(`where: ${value} is no ${dtype}; cast the other operand with to()`);
  return runtime.tensor(value, [], { dtype });
}

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
    pointwise: { expression, scalars: constants },
  });

const keepWhereOp: Op<null> = masked<null>(
  kernels.keepWhere,
  () => [],
  (g, mask) => keepWhere(g, mask),
);

/** x where the mask is not 0, else 0, even where x is NaN. */
export const keepWhere: CallableOp<(x: Tensor, mask: Tensor) => Tensor, null> = callable(
  keepWhereOp,
  { x: tensor, mask: tensor },
  (x: Tensor, mask: Tensor) => keepWhereOp.apply([x, mask], null),
);

/** A finite number beyond the range of a format saturates: −1e9 must not become −∞ in float16. */
function withinRange(value: number, dtype: DType): number {
  if (!isFloating(dtype)) return value; // For integers the kernel saturates.
  const { max: limit } = dtypes[dtype].format.finfo;
  return Number.isFinite(value) ? Math.min(Math.max(value, -limit), limit) : value;
}

const fill = masked<number>(
  kernels.maskedFill,
  (value, dtype) => [withinRange(value, dtype)],
  (g, mask) => keepWhere(g, logicalNot(mask)),
);

/**
 * x with `value` where the mask is not 0. A finite value beyond the range of x's dtype becomes the end of that range; infinities stay
 * infinite. For integers the value is truncated, and infinities saturate too.
 */
export const maskedFill: (x: Tensor, mask: Tensor, value: number) => Tensor = checked(
  "maskedFill",
  { x: tensor, mask: tensor, value: number },
  (x: Tensor, mask: Tensor, value: number): Tensor => fill.apply([x, mask], value),
);
