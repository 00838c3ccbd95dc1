import { isFloating } from "@halfstep/formats/dtypes";
import * as ops from "@halfstep/tensor";
import { castTo, type Tensor } from "@halfstep/tensor";
import { dataType } from "../data-type.js";

const unsignedTypes: ReadonlySet<number> = new Set([
  ...[dataType.UINT8, dataType.UINT16, dataType.UINT32, dataType.UINT64, dataType.BOOL],
]);

/** The dtype that holds integers and masks of a type. Int64 has the range of int32 here. */
export const integerDType = (type: number): "int32" | "uint32" =>
  unsignedTypes.has(type) ? "uint32" : "int32";

/** The magnitude of integers, as uint32. */
const magnitude = (x: Tensor): Tensor => (x.dtype === "uint32" ? x : castTo(ops.abs(x), "uint32"));

/** The sign of integers, as int32. */
const signOf = (x: Tensor): Tensor =>
  x.dtype === "uint32" ? castTo(ops.gt(x, 0), "int32") : ops.sign(x);

/** The quotient of integers, rounded toward zero. */
export function quotient(a: Tensor, b: Tensor): Tensor {
  const [x, y] = [magnitude(a), magnitude(b)];
  // Float32 has fewer digits, and GPUs divide with an error: a little less than the quotient, again of what is left, and the last one.
  const less = (rest: Tensor): Tensor => castTo(rest.div(y).mul(1 - 2 ** -20), "uint32");
  const most = less(x);
  const rest = x.sub(most.mul(y));
  const more = less(rest);
  const last = ops.ge(rest.sub(more.mul(y)), y);
  const found = most.add(more).add(last);
  if (a.dtype === "uint32" && b.dtype === "uint32") return found;
  return castTo(found, "int32").mul(signOf(a)).mul(signOf(b));
}

/** The lowest bits of integers as a signed number: shifted to the top and back, where float32 holds what is left. */
const lowest = (x: Tensor, bits: 8 | 16): Tensor =>
  castTo(castTo(x.mul(2 ** (32 - bits)), "float32").mul(2 ** (bits - 32)), "int32");

/** Numbers as integers of 8 or 16 bits, of which only the lowest bits are kept. */
export function wrapped(x: Tensor, bits: 8 | 16, isSigned: boolean): Tensor {
  const whole = isFloating(x.dtype) ? castTo(x, "int32") : x;
  const low = lowest(whole, bits);
  const half = 2 ** (bits - 1);
  if (isSigned)
    return whole.dtype === "int32" ? low : ops.where(ops.ge(low, half), low.add(-2 * half), low);
  const unsigned =
    whole.dtype === "int32" ? ops.where(ops.lt(low, 0), low.add(2 * half), low) : low;
  return castTo(unsigned, "uint32");
}

/** Numbers as integers of 32 bits without sign: negative integers begin anew at 2^32. */
export function unsigned(x: Tensor): Tensor {
  if (x.dtype !== "int32") return castTo(x, "uint32");
  const low = wrapped(x, 16, false);
  // A multiple of 2^16, which float32 holds.
  const high = castTo(castTo(x.sub(castTo(low, "int32")), "float32").mul(2 ** -16), "int32");
  return wrapped(high, 16, false)
    .mul(2 ** 16)
    .add(low);
}
