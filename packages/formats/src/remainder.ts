import { checkKind, checkRoom } from "./arrays/arguments.js";

/**
 * A float32 as the bfloat16 next to it and 16 more bits, with nothing lost: the storage of optimizers that keep bfloat16
 * weights and exact float32 masters in 4 bytes together (`store_param_remainders` of apex and TransformerEngine).
 *
 * On the float32's bits, in u32 arithmetic:
 *
 * ```text
 * split: isNaN     = (bits & 0x7fffffff) > 0x7f800000
 *        code      = isNaN ? (bits >> 16) | 0x40 : (bits + 0x8000) >> 16
 *        remainder = bits & 0xffff
 * join:  isNaN     = (code & 0x7fff) > 0x7f80
 *        bits      = ((code - (isNaN ? 0 : remainder >> 15)) << 16) | remainder
 * ```
 *
 * So the code is the nearest bfloat16, ties away from zero, and the remainder is the float32's low half; where its top bit
 * is set the code was rounded up, which `join` undoes. Read as an int16, the remainder is the distance from the code in
 * float32 units, toward larger magnitudes. Ties cannot go to even: 65,537 float32 numbers round to each even code then, one
 * more than 16 bits can tell apart. Numbers from 0x7f7f8000 on (3.3961776e38) have the code of Infinity, to which they round,
 * and come back finite.
 *
 * Every bit pattern comes back, but for signalling NaNs, which come back quiet (bit 22 set). apex and TransformerEngine
 * round NaNs too, so that 0x7fffffff gets the code of −0; here the code of a NaN is a NaN. On all other numbers the bits are
 * the same as theirs.
 */
export interface SplitFloat32 {
  /** bfloat16 codes: what to compute with. */
  readonly codes: Uint16Array;
  /** Low halves of the float32 bits. */
  readonly remainders: Uint16Array;
}

/** The bfloat16 code of a float32's bits, nearest with ties away from zero; see `SplitFloat32`. */
export function remainderCode(bits: number): number {
  return isNaN32(bits) ? (bits >>> 16) | 0x40 : (bits + 0x8000) >>> 16;
}

/** The bits (u32) of the float32 that was split into a bfloat16 code and a remainder; see `SplitFloat32`. */
export function joinRemainder(code: number, remainder: number): number {
  const carry = (code & 0x7fff) > 0x7f80 ? 0 : remainder >>> 15;
  return (((code - carry) << 16) | remainder) >>> 0;
}

/**
 * Splits float32 numbers into bfloat16 codes and remainders, in `out` or new arrays.
 * @throws TypeError if `values` is no Float32Array, an array of `out` no Uint16Array, or a buffer is detached.
 * @throws RangeError if an array of `out` is shorter than `values`.
 */
export function splitFloat32Array(values: Float32Array, out?: SplitFloat32): SplitFloat32 {
  const name = "splitFloat32Array";
  checkKind(name, "values", values, ["Float32Array"], "numbers to split");
  const { length } = values;
  const split = out ?? { codes: new Uint16Array(length), remainders: new Uint16Array(length) };
  const { codes, remainders } = split;
  checkHalves(name, split);
  checkRoom(name, length, codes);
  checkRoom(name, length, remainders);
  const words = new Uint32Array(values.buffer, values.byteOffset, length);
  for (let i = 0; i < length; i++) {
    const bits = words[i] as number;
    codes[i] = remainderCode(bits);
    remainders[i] = bits;
  }
  return split;
}

/**
 * The float32 numbers that were split, bit for bit, in `out` or a new array.
 * @throws TypeError if codes or remainders are no Uint16Array, `out` is no Float32Array, or a buffer is detached.
 * @throws RangeError if codes and remainders differ in length or `out` is shorter.
 */
export function joinFloat32Array(split: SplitFloat32, out?: Float32Array): Float32Array {
  const name = "joinFloat32Array";
  checkHalves(name, split);
  const { codes, remainders } = split;
  const { length } = codes;
  if (remainders.length !== length) {
    throw new RangeError(
      `${name}: ${length} codes and ${remainders.length} remainders: pass the two arrays of one split`,
    );
  }
  const values = out ?? new Float32Array(length);
  checkKind(name, "out", values, ["Float32Array"], "numbers");
  checkRoom(name, length, values);
  const words = new Uint32Array(values.buffer, values.byteOffset, length);
  for (let i = 0; i < length; i++) {
    words[i] = joinRemainder(codes[i] as number, remainders[i] as number);
  }
  return values;
}

const isNaN32 = (bits: number): boolean => (bits & 0x7fffffff) > 0x7f800000;

function checkHalves(name: string, { codes, remainders }: SplitFloat32): void {
  checkKind(name, "codes", codes, ["Uint16Array"], "halves");
  checkKind(name, "remainders", remainders, ["Uint16Array"], "halves");
}
