import { DTypeError } from "@halfstep/autocast";
import type { DType } from "@halfstep/device";
import { dtypes, isInteger } from "@halfstep/formats/dtypes";
import * as kernels from "@halfstep/kernels";
import { either, number, tensor } from "../arguments/kinds.js";
import {
  type CallableOp,
  callable,
  defineOp,
  type Op,
  type Operand,
  type TensorSpec,
  type UnaryOp,
} from "../dispatch/op.js";
import type { Tensor } from "../tensor/tensor.js";
import { scalarsOf } from "./comparison.js";
import { broadcastAll, integerDType } from "./pointwise.js";

// Functions of integers alone. They are exact to 32 bits, and no gradient flows.

/** A function of two tensors of integers, which broadcast, or of one and a whole number. */
export type IntegerOp = CallableOp<(a: Tensor, b: Tensor | number) => Tensor, number | null>;

type DTypeOf = (name: string, inputs: readonly TensorSpec[], numbers: readonly number[]) => DType;

const integerOp = (
  name: string,
  expression: kernels.Expression,
  dtypeOf: DTypeOf = integerDType,
): Op<number | null> =>
  defineOp<number | null>({
    name,
    castPolicy: "none",
    shape(inputs, constant) {
      const float = inputs.find(({ dtype }) => !isInteger(dtype));
      if (float)
        throw new DTypeError(
          `${name}: an operand is ${float.dtype}, and only integers are computed: cast it with to("int32")`,
        );
      const dtype = dtypeOf(name, inputs, scalarsOf(constant));
      return [{ shape: broadcastAll(name, inputs), dtype }];
    },
    forward: ({ target, inputs, outputs, attributes }) =>
      target.launch(
        kernels.elementwise(expression, inputs, outputs[0] as Operand, scalarsOf(attributes)),
      ),
    pointwise: { expression, scalars: scalarsOf },
    backward: "none",
  });

function ofTwo(
  both: kernels.Expression,
  withNumber: kernels.Expression,
  dtypeOf?: DTypeOf,
): IntegerOp {
  const { name } = both;
  const [op, one] = [integerOp(name, both, dtypeOf), integerOp(name, withNumber, dtypeOf)];
  return callable(op, { a: tensor, b: either(tensor, number) }, (a: Tensor, b: Tensor | number) =>
    typeof b === "number" ? one.apply([a], b) : op.apply([a, b], null),
  );
}

/**
 * a & b, bit by bit. An int32 and a uint32 give an int32; a number counts modulo 2^32, so that −1 has all bits.
 */
export const bitwiseAnd: IntegerOp = ofTwo(kernels.bitwiseAnd, kernels.bitwiseAndScalar);
/** a | b, bit by bit, of the dtypes of {@link bitwiseAnd}. */
export const bitwiseOr: IntegerOp = ofTwo(kernels.bitwiseOr, kernels.bitwiseOrScalar);
/** a ^ b, bit by bit, of the dtypes of {@link bitwiseAnd}. */
export const bitwiseXor: IntegerOp = ofTwo(kernels.bitwiseXor, kernels.bitwiseXorScalar);

const not = integerOp("bitwiseNot", kernels.bitwiseNot);
/** Every bit of x turned. Of a mask take `logicalNot`. */
export const bitwiseNot: UnaryOp & Op<number | null> = callable(not, { x: tensor }, (x: Tensor) =>
  not.apply([x], null),
);

/** The dtype of the first operand. */
const ofFirst: DTypeOf = (name, inputs, numbers) => {
  integerDType(name, inputs, numbers);
  return (inputs[0] as TensorSpec).dtype;
};

/** x · 2^count modulo 2^32, in the dtype of x; 0 where the count is 32 or more, or below 0. */
export const bitwiseLeftShift: IntegerOp = ofTwo(
  kernels.bitwiseLeftShift,
  kernels.bitwiseLeftShiftScalar,
  ofFirst,
);
/** x / 2^count rounded down, in the dtype of x; 0, or −1 of a negative x, where the count is 32 or more, or below 0. */
export const bitwiseRightShift: IntegerOp = ofTwo(
  kernels.bitwiseRightShift,
  kernels.bitwiseRightShiftScalar,
  ofFirst,
);

/** A number must be one of the tensor's dtype: −3 modulo 2^32 is another divisor. */
const withinRange: DTypeOf = (name, inputs, numbers) => {
  const dtype = integerDType(name, inputs, numbers);
  const [divisor = 0] = numbers;
  const [least, most] = dtypes[dtype as "int32"].range;
  if (divisor < least || divisor > most) throw new RangeError(`${name}: ${divisor} is no ${dtype}`);
  return dtype;
};

/**
 * a / b rounded down, as in Python, and 0 where b is 0. An int32 and a uint32 give an int32, the quotient of both numbers modulo 2^32. Of floats take
 * `a.div(b).floor()`.
 */
export const floorDivide: IntegerOp = ofTwo(
  kernels.floorDivide,
  kernels.floorDivideScalar,
  withinRange,
);
/** a − b · floorDivide(a, b), which has the sign of b, as in Python; a where b is 0. Dtypes are those of {@link floorDivide}. */
export const remainder: IntegerOp = ofTwo(kernels.remainder, kernels.remainderScalar, withinRange);
