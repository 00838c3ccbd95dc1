import { type DType, dtypes, type HalfDType, isHalf } from "@halfstep/formats/dtypes";

type Stored = { readonly dtype: DType; readonly rounding?: HalfDType };

/** Whether elements are compared as 16-bit codes: where they are stored as such. */
const hasCodes = (stored: Stored): stored is Stored & { readonly dtype: HalfDType } =>
  !stored.rounding && isHalf(stored.dtype);

/**
 * WGSL `magnitudes_x(q: u32) -> vec4u`: the elements of quad q of binding `x` without their signs, as bits: 0 for zero, and at least
 * {@link infinityOf} for infinities and NaN. It reads the bits from memory, because WGSL compilers may assume that no float is infinite
 * or NaN. Elements of 16 bits give 16-bit codes.
 */
export function magnitudesWgsl(x: string, stored: Stored): string {
  const head = `fn magnitudes_${x}(q: u32) -> vec4u {`;
  return hasCodes(stored)
    ? `${head} let w = ${x}_data[q]; return vec4u(w.x, w.x >> 16u, w.y, w.y >> 16u) & vec4u(0x7fffu); }\n`
    : `${head} return bitcast<vec4u>(load_${x}(q)) & vec4u(0x7fffffffu); }\n`;
}

/** WGSL: the bits of infinity among those magnitudes; those of NaN are larger. */
export const infinityOf = (stored: Stored): string =>
  `0x${dtypes[hasCodes(stored) ? stored.dtype : "float32"].format.encode(Infinity).toString(16)}u`;

/** WGSL: the largest of four. */
export const largestOf = (quad: string): string =>
  `max(max(${quad}.x, ${quad}.y), max(${quad}.z, ${quad}.w))`;
