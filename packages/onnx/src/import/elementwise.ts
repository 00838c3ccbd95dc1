import { isFloating } from "@halfstep/formats/dtypes";
import * as ops from "@halfstep/tensor";
import { castTo, Tensor } from "@halfstep/tensor";
import { remainder } from "@halfstep/tensor/functional";
import { dataType, isDataType } from "../data-type.js";
import type { Call, OnnxValue, Operator } from "./call.js";
import { storedAs } from "./host-numbers.js";
import { elementwiseOnHost, isElementwiseOnHost } from "./host-ops.js";
import { HostTensor } from "./host-tensor.js";
import { quotient, unsigned, wrapped } from "./integers.js";

/** An operator that is computed on the host where all its operands are there. */
const eitherPlace =
  (onDevice: Operator): Operator =>
  (call) => {
    const { inputs, node } = call;
    const isHost = inputs.every((each) => each instanceof HostTensor);
    if (!isHost || !isElementwiseOnHost(node.operator)) return onDevice(call);
    return elementwiseOnHost(
      node.operator,
      inputs as readonly HostTensor[],
      takesDividendSign(call),
    );
  };

/** Whether Mod gives numbers with the sign of the dividend, as in C, and not with that of the divisor, as in Python. */
const takesDividendSign = (call: Call): boolean =>
  call.node.operator === "Mod" && call.number("fmod", 0) === 1;

function modulo(call: Call): Tensor {
  const [a, b] = operands(call);
  if (isFloating(a.dtype)) throw call.unsupported("of floating-point numbers of the device");
  return takesDividendSign(call) ? a.sub(quotient(a, b).mul(b)) : remainder(a, b);
}

const unary = (of: (x: Tensor) => Tensor): Operator => eitherPlace((call) => of(call.tensor(0)));

/** Operands of one dtype: integers beside floats are cast to theirs, and weights follow the values that they meet. */
function operands(call: Call): readonly [Tensor, Tensor] {
  const [a, b] = [call.tensor(0), call.tensor(1)];
  if (a.dtype === b.dtype) return [a, b];
  if (isFloating(a.dtype) && !isFloating(b.dtype)) return [a, castTo(b, a.dtype)];
  if (!isFloating(a.dtype) && isFloating(b.dtype)) return [castTo(a, b.dtype), b];
  if (b instanceof ops.Variable && isFloating(b.dtype)) return [a, castTo(b, a.dtype)];
  if (a instanceof ops.Variable && isFloating(a.dtype)) return [castTo(a, b.dtype), b];
  return [a, b];
}

type WithNumber = (x: Tensor, c: number) => Tensor;

/** An operator of two operands, either of which may be a constant number. `isBounded`: one beside integers has to be within 32 bits. */
const binary = (
  both: (a: Tensor, b: Tensor) => Tensor,
  right?: WithNumber,
  left?: WithNumber,
  isBounded = true,
): Operator =>
  eitherPlace((call) => {
    const [x, y] = call.inputs;
    const [first, second] = [call.scalar(0), call.scalar(1)];
    const takes = (a: OnnxValue | undefined, b: OnnxValue | undefined, c: number): boolean =>
      a instanceof Tensor &&
      (b?.shape.length ?? 0) <= a.rank &&
      (!isBounded || isFloating(a.dtype) || Math.abs(c) < 2 ** 31);
    if (right && second !== undefined && takes(x, y, second)) return right(x as Tensor, second);
    if (left && first !== undefined && takes(y, x, first)) return left(y as Tensor, first);
    return both(...operands(call));
  });

const comparison = (compare: ops.Comparison, mirrored: ops.Comparison): Operator =>
  binary(
    (a, b) => compare(a, b),
    (x, c) => compare(x, c),
    (x, c) => mirrored(x, c),
    false,
  );

/** An operator of any number of operands. */
const several = (both: (a: Tensor, b: Tensor) => Tensor): Operator =>
  eitherPlace((call) =>
    call.inputs
      .map((_, place) => castTo(call.tensor(place), call.tensor(0).dtype))
      .reduce((a, b) => both(a, b)),
  );

const floats = (x: Tensor): Tensor => (isFloating(x.dtype) ? x : castTo(x, "float32"));

function where(call: Call): OnnxValue {
  const mask = call.tensor(0);
  const [a, b] = [call.scalar(1), call.scalar(2)];
  const [x, y] = [call.inputs[1], call.inputs[2]];
  /** With the dimensions that the constant has before those of the result. */
  const led = (result: Tensor, constant: OnnxValue | undefined): Tensor => {
    const missing = (constant?.shape.length ?? 0) - result.rank;
    return missing > 0
      ? result.reshape([...Array<number>(missing).fill(1), ...result.shape])
      : result;
  };
  // A finite number beyond the range of halves saturates, as the numbers of masks are meant to.
  if (a !== undefined && y instanceof Tensor) return led(ops.maskedFill(y, mask, a), x);
  if (b !== undefined && x instanceof Tensor)
    return led(ops.maskedFill(x, ops.logicalNot(mask), b), y);
  const [p, q] = [call.tensor(1), call.tensor(2)];
  return ops.where(mask, p, p.dtype === q.dtype ? q : castTo(q, p.dtype));
}

const divideFloats = binary(
  (a, b) => a.div(b),
  (x, c) => x.div(c),
);

/** Quotients of integers are rounded toward zero. */
function divide(call: Call): ReturnType<Operator> {
  const isWhole = call.inputs.every((x) =>
    x instanceof Tensor ? !isFloating(x.dtype) : !x?.isFloat,
  );
  return isWhole ? quotient(call.tensor(0), call.tensor(1)) : divideFloats(call);
}

const powerOfFloats = binary(
  (a, b) => ops.pow(a, b),
  (x, c) => (c === 2 ? x.square() : ops.pow(x, c)),
);

/** A power has the type of its base: products of integers, where float32 would miss the last digits. */
function power(call: Call): ReturnType<Operator> {
  const base = call.value(0);
  if (!(base instanceof Tensor) || isFloating(base.dtype)) return powerOfFloats(call);
  const exponent = call.scalar(1);
  if (exponent === undefined || !(Number.isInteger(exponent) && exponent >= 0 && exponent < 32))
    throw call.unsupported("of integers, with an exponent that is no constant from 0 to 31");
  if (exponent === 0) return base.mul(0).add(1);
  let product = base;
  for (let n = 1; n < exponent; n++) product = product.mul(base);
  return product;
}

function isInf(call: Call): OnnxValue {
  const x = call.tensor(0);
  const found = ops.isInf(x);
  const [negative, positive] = ["detect_negative", "detect_positive"].map(
    (name) => call.number(name, 1) === 1,
  );
  const counted = negative ? (positive ? undefined : ops.lt(x, 0)) : ops.gt(x, 0);
  const kept = counted ? ops.logicalAnd(found, counted) : found;
  return negative || positive ? kept : ops.logicalAnd(kept, ops.lt(x, 0));
}

function clip(call: Call): OnnxValue {
  const bound = (place: number, name: string, standard: number): number => {
    if (!call.has(place)) return call.number(name, standard);
    const value = call.scalar(place);
    if (value === undefined) throw call.unsupported("a bound that is no constant");
    return value;
  };
  const min = bound(1, "min", Number.NEGATIVE_INFINITY);
  const max = bound(2, "max", Number.POSITIVE_INFINITY);
  return ops.clamp(call.tensor(0), { min, max });
}

/** Floats keep the dtype in which they are computed unless the file names another one than float32. */
function cast(call: Call): OnnxValue {
  const to = call.number("to", 0);
  const x = call.value(0);
  if (x instanceof HostTensor) {
    if (!isDataType(to)) throw call.unsupported(`to type ${to}`);
    return new HostTensor(to, x.shape, x.list.map(storedAs(to)));
  }
  switch (to) {
    case dataType.FLOAT:
    case dataType.DOUBLE:
      return castTo(x, "float32");
    case dataType.FLOAT16:
      return castTo(x, "float16");
    case dataType.BFLOAT16:
      return castTo(x, "bfloat16");
    case dataType.BOOL:
      return x.to("bool");
    case dataType.UINT8:
      return wrapped(x, 8, false);
    case dataType.INT8:
      return wrapped(x, 8, true);
    case dataType.UINT16:
      return wrapped(x, 16, false);
    case dataType.INT16:
      return wrapped(x, 16, true);
    case dataType.UINT32:
      return unsigned(x);
    case dataType.INT32:
    case dataType.INT64:
      return castTo(x, "int32");
  }
  throw call.unsupported(`to type ${to}`);
}

/** Operators that compute element by element. */
export const elementwise: Readonly<Record<string, Operator>> = {
  Add: binary(
    (a, b) => a.add(b),
    (x, c) => x.add(c),
    (x, c) => x.add(c),
  ),
  Sub: binary(
    (a, b) => a.sub(b),
    (x, c) => x.sub(c),
    (x, c) => x.neg().add(c),
  ),
  Mul: binary(
    (a, b) => a.mul(b),
    (x, c) => x.mul(c),
    (x, c) => x.mul(c),
  ),
  Div: eitherPlace(divide),
  Mod: eitherPlace(modulo),
  Pow: power,
  Max: several(ops.maximum),
  Min: several(ops.minimum),
  And: binary(ops.logicalAnd),
  Or: binary(ops.logicalOr),
  Xor: binary(ops.logicalXor),
  Equal: comparison(ops.eq, ops.eq),
  Less: comparison(ops.lt, ops.gt),
  LessOrEqual: comparison(ops.le, ops.ge),
  Greater: comparison(ops.gt, ops.lt),
  GreaterOrEqual: comparison(ops.ge, ops.le),
  PRelu: binary(ops.prelu),
  Not: unary(ops.logicalNot),
  IsNaN: unary(ops.isNan),
  IsInf: isInf,
  Neg: unary((x) => x.neg()),
  Abs: unary(ops.abs),
  Sign: unary(ops.sign),
  Floor: unary(ops.floor),
  Ceil: unary(ops.ceil),
  Round: unary(ops.round),
  Sqrt: unary((x) => ops.sqrt(floats(x))),
  Reciprocal: unary(ops.reciprocal),
  Exp: unary(ops.exp),
  Log: unary(ops.log),
  Erf: unary(ops.erf),
  Sin: unary(ops.sin),
  Cos: unary(ops.cos),
  Tanh: unary(ops.tanh),
  Sigmoid: unary(ops.sigmoid),
  Relu: unary(ops.relu),
  Softplus: unary((x) => ops.softplus(x)),
  Elu: (call) => ops.elu(call.tensor(0), call.number("alpha", 1)),
  LeakyRelu: (call) => ops.leakyRelu(call.tensor(0), call.number("alpha", 0.01)),
  Gelu: (call) =>
    ops.gelu(call.tensor(0), {
      approximate: call.text("approximate", "none") === "tanh" ? "tanh" : "none",
    }),
  Clip: clip,
  Cast: cast,
  Where: eitherPlace(where),
  Identity: (call) => call.value(0),
  // Files that were exported in training mode name its mask, which nothing reads in inference.
  Dropout: (call) => call.value(0),
};
