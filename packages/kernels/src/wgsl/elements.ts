import type { ProgramContext } from "@halfstep/device";
import type { DType, Float8DType, HalfDType } from "@halfstep/formats/dtypes";
import {
  decode4Bfloat16,
  decode4Float8e4m3fn,
  decode4Float8e5m2,
  decodeFloat8e4m3fn,
  decodeFloat8e5m2,
  encode4Bfloat16,
  encode4Float8e4m3fnSaturate,
  encode4Float8e5m2Saturate,
  encode4Float16,
  round4Bfloat16,
  round4Float16,
} from "@halfstep/formats/wgsl";
import { isCpu } from "../cpu-adapter.js";
import { type Domain, scalarType } from "../domain.js";

/** Elements that are loaded or stored at a time. */
export type Unit = 1 | 2 | 4;

/** The WGSL of a dtype: how its elements lie in a buffer, and how they are loaded and stored. */
export interface ElementWgsl {
  /** Declarations of the conversions that the expressions below call, and of the functions `round…` to this format. */
  conversions(context: ProgramContext): string;
  /** Whether a program with these elements enables `f16` where the device has it. */
  readonly usesF16: boolean;
  /** The type of what a buffer is an array of. */
  array(unit: Unit): string;
  /**
   * Element `i` of the buffer `data`.
   *
   * @param decoder a prefix of the functions that decode.
   */
  at(data: string, unit: Unit, decoder: string): string;
  /** Unit `i` of the buffer `data`. */
  load(data: string, unit: Unit, decoder: string): string;
  /** A unit as it lies in the buffer. */
  store(value: string, unit: Unit): string;
  /** A `vec4u` of the stored magnitudes of a unit, as codes of the dtype. Units of one or two elements fill it with copies. */
  magnitudes(stored: string, unit: Unit): string;
}

/** Numbers of 32 bits, which lie in memory as they are computed with. */
const words = (domain: Domain): ElementWgsl => {
  const scalar = scalarType(domain);
  return {
    conversions: () => "",
    usesF16: false,
    array: (unit) => (unit === 1 ? scalar : `vec${unit}<${scalar}>`),
    at: (data, unit) => {
      if (unit === 1) return `${data}[i]`;
      return unit === 2 ? `${data}[i >> 1u][i & 1u]` : `${data}[i >> 2u][i & 3u]`;
    },
    load: (data) => `${data}[i]`,
    store: (value) => value,
    magnitudes: (stored, unit) => magnitudesOf(asQuad(stored, unit)),
  };
};

/** Codes of 16 bits, two in a word, the first in its low half. */
const halves = (
  dtype: HalfDType,
  usesF16: boolean,
  conversions: ElementWgsl["conversions"],
): ElementWgsl => {
  const at: ElementWgsl["at"] = (data, unit, decoder) => {
    const word = unit === 4 ? `${data}[i >> 2u][(i >> 1u) & 1u]` : `${data}[i >> 1u]`;
    return `${decoder}pair_${dtype}(${word} >> ((i & 1u) * 16u)).x`;
  };
  return {
    conversions: (context) => conversions(context),
    usesF16,
    array: (unit) => (unit === 4 ? "vec2u" : "u32"),
    at,
    load: (data, unit, decoder) =>
      unit === 1
        ? at(data, unit, decoder)
        : `${decoder}${unit === 4 ? "quad" : "pair"}_${dtype}(${data}[i])`,
    store: (value, unit) =>
      unit === 4 ? `encode4_${dtype}(${value})` : `encode4_${dtype}(vec4f(${value}, 0.0, 0.0)).x`,
    magnitudes: (stored, unit) =>
      unit === 4
        ? `(vec4u(${stored}.x, ${stored}.x >> 16u, ${stored}.y, ${stored}.y >> 16u) & vec4u(0x7fffu))`
        : `(vec4u(${stored}, ${stored} >> 16u, ${stored}, ${stored} >> 16u) & vec4u(0x7fffu))`,
  };
};

/** Codes of 8 bits, four in a word, the first in its lowest byte. What hardware multiplies of them is multiplied as float16. */
const bytes = (dtype: Float8DType, conversions: string): ElementWgsl => {
  const at: ElementWgsl["at"] = (data) =>
    `${dtype.replace("float", "f")}_bits_to_f32(${data}[i >> 2u] >> ((i & 3u) * 8u))`;
  return {
    conversions: () => conversions,
    usesF16: true,
    array: () => "u32",
    at,
    load: (data, unit, decoder) => {
      if (unit === 1) return at(data, unit, decoder);
      const quad = `decode4_${dtype}(${data}[i${unit === 4 ? "" : " >> 1u"}])`;
      return unit === 4 ? quad : `select(${quad}.xy, ${quad}.zw, (i & 1u) == 1u)`;
    },
    store: (value) => `encode4_${dtype}_saturate(${value})`,
    magnitudes: (stored) => `((vec4u(${stored}) >> vec4u(0u, 8u, 16u, 24u)) & vec4u(0x7fu))`,
  };
};

/** WGSL: one, two or four numbers as a vector of four. */
export const asQuad = (value: string, unit: Unit): string =>
  unit === 4 ? value : unit === 2 ? `${value}.xyxy` : `vec4f(${value})`;

/** WGSL: the magnitudes of four numbers, as bits of float32. */
export const magnitudesOf = (quad: string): string =>
  `(bitcast<vec4u>(${quad}) & vec4u(0x7fffffffu))`;

// Hardware conversions are exact when widening, and only they are fast enough for inner loops. A bitcast to `f16` would do the same,
// but naga, the compiler of Firefox and Deno, refuses the one to four halves and compiles the one to two wrongly.
const loadFloat16 = `fn quad_float16(q: vec2u) -> vec4f { return vec4f(unpack2x16float(q.x), unpack2x16float(q.y)); }
fn pair_float16(w: u32) -> vec2f { return unpack2x16float(w); }
`;

// The addition rounds a subnormal to its last bit, to nearest even: WGSL does not define this rounding, but CPUs do it.
const encodeFloat16OnCpu = `fn encode4_float16(x: vec4f) -> vec2u {
  let u = bitcast<vec4u>(x);
  let a = u & vec4u(0x7fffffffu);
  let n = min((a + vec4u(0xc8000fffu) + ((a >> vec4u(13u)) & vec4u(1u))) >> vec4u(13u), vec4u(0x7c00u));
  let s = bitcast<vec4u>(bitcast<vec4f>(a) + 0.5) - vec4u(0x3f000000u);
  let h = select(select(n, s, a < vec4u(0x38800000u)), vec4u(0x7e00u), a > vec4u(0x7f800000u));
  let c = h | ((u >> vec4u(16u)) & vec4u(0x8000u));
  return c.xz | (c.yw << vec2u(16u));
}
`;

const loadBfloat16 = `fn quad_bfloat16(q: vec2u) -> vec4f { return decode4_bfloat16(q); }
fn pair_bfloat16(w: u32) -> vec2f { return bitcast<vec2f>(vec2u(w << 16u, w & 0xffff0000u)); }
`;

const roundFewer = (format: HalfDType): string =>
  `fn round2_${format}(v: vec2f) -> vec2f { return round4_${format}(vec4f(v, v)).xy; }
fn round1_${format}(v: f32) -> f32 { return round4_${format}(vec4f(v)).x; }
`;

/** The WGSL of each dtype. */
export const elementWgsl: Readonly<Record<DType, ElementWgsl>> = {
  float32: words("float"),
  float16: halves(
    "float16",
    true,
    (context) =>
      loadFloat16 +
      round4Float16 +
      roundFewer("float16") +
      (isCpu(context) ? encodeFloat16OnCpu : encode4Float16),
  ),
  bfloat16: halves(
    "bfloat16",
    false,
    () =>
      encode4Bfloat16 + decode4Bfloat16 + loadBfloat16 + round4Bfloat16 + roundFewer("bfloat16"),
  ),
  float8e4m3fn: bytes(
    "float8e4m3fn",
    encode4Float8e4m3fnSaturate + decode4Float8e4m3fn + decodeFloat8e4m3fn,
  ),
  float8e5m2: bytes("float8e5m2", encode4Float8e5m2Saturate + decode4Float8e5m2 + decodeFloat8e5m2),
  int32: words("int32"),
  uint32: words("uint32"),
};
