import type { DType, KernelView, ProgramContext } from "@halfstep/device";
import { dtypes, isHalf } from "@halfstep/formats/dtypes";
import { valueType } from "../copies/value-type.js";

/** Which elements of a row come first. */
export type Order = "largest" | "smallest";

/** Bits of a key that differ between halves: sign, exponent and mantissa as float32 has them, in whole digits of four bits. */
const keyBits = (dtype: DType | undefined): number =>
  dtype && isHalf(dtype) ? Math.ceil((9 + dtypes[dtype].format.mantissaBits) / 4) * 4 : 32;

/** WGSL `key(v)` of elements of the first binding: an integer of `bits` bits that is larger for those that come first. */
export function keyOf(order: Order, { bindings }: ProgramContext): { bits: number; code: string } {
  const { dtype, rounding } = bindings[0] as ProgramContext["bindings"][number];
  const type = valueType(dtype);
  if (type !== "f32") {
    const ordered = type === "u32" ? "v" : "bitcast<u32>(v) ^ 0x80000000u";
    const key = order === "smallest" ? `~(${ordered})` : ordered;
    return { bits: 32, code: `\nfn key(v: ${type}) -> u32 { return ${key}; }\n` };
  }
  const bits = Math.min(keyBits(dtype), keyBits(rounding));
  const flip = order === "smallest" ? "~" : "";
  return {
    bits,
    code: `
fn key(v: f32) -> u32 {
  let bits = bitcast<u32>(v);
  let size = bits & 0x7fffffffu;
  var k = select(bits | 0x80000000u, ~bits, bits > 0x80000000u);
  if (size == 0u) { k = 0x80000000u; }
  if (size > 0x7f800000u) { k = 0xffffffffu; }
  return (${flip}k) >> ${32 - bits}u;
}
`,
  };
}

/** Compares columns of the row at `base` in a reference: equal ones come in their order. */
export const comparing = (
  x: KernelView,
  base: number,
  order: Order,
): ((a: number, b: number) => number) => {
  const sign = order === "largest" ? 1 : -1;
  return (a, b) => {
    const [u, v] = [x[base + a] as number, x[base + b] as number];
    if (u > v) return -sign;
    if (u < v) return sign;
    return (u === v ? 0 : sign * (Number(Number.isNaN(v)) - Number(Number.isNaN(u)))) || a - b;
  };
};

/** One for each order. */
export const inBothOrders = <T>(make: (order: Order) => T): Record<Order, T> => ({
  largest: make("largest"),
  smallest: make("smallest"),
});
