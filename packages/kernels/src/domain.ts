import { type DType, floatingDTypes } from "@halfstep/device";

/**
 * The kind of a value between its load and its store: a float, computed in float32, or a 32-bit integer, which never becomes a float
 * implicitly.
 */
export type Domain = "float" | IntegerDomain;
/** The domains of integers: exact to 32 bits. */
export type IntegerDomain = "int32" | "uint32";

/** The domain of a loaded element of this storage. */
export const domainOf = (dtype: DType): Domain =>
  dtype === "int32" || dtype === "uint32" ? dtype : "float";

/** The storage of values of a domain. */
export const dtypesOf = (domain: Domain): readonly DType[] =>
  domain === "float" ? floatingDTypes : [domain];

/** WGSL types of one element, and of two or four. */
export const scalarType = (domain: Domain): "f32" | "i32" | "u32" =>
  domain === "float" ? "f32" : domain === "int32" ? "i32" : "u32";
export const quadType = (domain: Domain): "vec4f" | "vec4i" | "vec4u" =>
  domain === "float" ? "vec4f" : domain === "int32" ? "vec4i" : "vec4u";
export const pairType = (domain: Domain): "vec2f" | "vec2i" | "vec2u" =>
  domain === "float" ? "vec2f" : domain === "int32" ? "vec2i" : "vec2u";

/** The smallest and the largest integer of a domain. */
export const integerRange = (domain: IntegerDomain): readonly [low: number, high: number] =>
  domain === "int32" ? [-(2 ** 31), 2 ** 31 - 1] : [0, 2 ** 32 - 1];

/** Converts a number to an integer: truncated, saturated, and 0 for NaN. */
export function toIntegerOf(domain: IntegerDomain, x: number): number {
  const [low, high] = integerRange(domain);
  // Avoids −0, which float64 arithmetic would keep.
  return Number.isNaN(x) ? 0 : Math.min(Math.max(Math.trunc(x), low), high) + 0;
}

/** Converts numbers of the host by `toIntegerOf`; typed arrays of the dtype are returned unchanged. */
export function integersOf(
  values: ArrayLike<number>,
  dtype: IntegerDomain,
): Int32Array<ArrayBuffer> | Uint32Array<ArrayBuffer> {
  const Integers = dtype === "int32" ? Int32Array : Uint32Array;
  if (values instanceof Integers) return values as Int32Array<ArrayBuffer>;
  const integers = new Integers(values.length);
  for (let i = 0; i < integers.length; i++) integers[i] = toIntegerOf(dtype, values[i] as number);
  return integers;
}
