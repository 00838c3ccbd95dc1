/**
 * WGSL of formats whose range is narrower than float32's. Float16, float8 and float4 differ in numbers only, one element and
 * a quad of them in the width of their variables.
 */

/** A format's layout, and the names that its functions go by. */
export interface NarrowFormat {
  /** In names of functions of one element, as in `f32_to_f16_bits`. */
  readonly id: string;
  /** In names of functions of four, as in `encode4_float16`. */
  readonly name: string;
  readonly bits: 4 | 8 | 16;
  readonly mantissaBits: number;
  readonly bias: number;
  /** Code of the largest finite number. The next one is infinity, or NaN where there is no infinity. */
  readonly largest: number;
  /** Code of the positive NaN that every positive NaN becomes; absent where there is neither infinity nor NaN. */
  readonly nan?: number;
}

interface EncodeVariant {
  readonly stochastic?: boolean;
  readonly saturate?: boolean;
}

/** How WGSL writes types and u32 constants of one element, or of four. */
interface Width {
  readonly float: string;
  readonly uint: string;
  readonly k: (value: number) => string;
}

const u32 = (value: number): string => `${value > 99 ? `0x${value.toString(16)}` : value}u`;
const one: Width = { float: "f32", uint: "u32", k: u32 };
const four: Width = { float: "vec4f", uint: "vec4u", k: (value) => `vec4u(${u32(value)})` };

const suffix = ({ saturate, stochastic }: EncodeVariant): string =>
  (saturate ? "_saturate" : "") + (stochastic ? "_stochastic" : "");

/** Declares `fn f32_to_<id>_bits(x: f32) -> u32`, or with `bits: u32` if stochastic. */
export function encoder(format: NarrowFormat, variant: EncodeVariant = {}): string {
  const bits = variant.stochastic ? ", bits: u32" : "";
  return `
fn f32_to_${format.id}_bits${suffix(variant)}(x: f32${bits}) -> u32 {
${encoding(format, variant, one)}  return code;
}
`;
}

/** Declares `fn encode4_<name>(x: vec4f) -> u32`, or `vec2u` for 16 bits, and with `bits: vec4u` if stochastic. */
export function encoder4(format: NarrowFormat, variant: EncodeVariant = {}): string {
  const { name, bits: size } = format;
  const bits = variant.stochastic ? ", bits: vec4u" : "";
  const packing =
    size === 16
      ? "  return code.xz | (code.yw << vec2u(16u));\n"
      : `  let q = code << vec4u(0u, ${size}u, ${2 * size}u, ${3 * size}u);
  return q.x | q.y | q.z | q.w;
`;
  return `
fn encode4_${name}${suffix(variant)}(x: vec4f${bits}) -> ${size === 16 ? "vec2u" : "u32"} {
${encoding(format, variant, four)}${packing}}
`;
}

/** Declares `fn <id>_bits_to_f32(h: u32) -> f32`. */
export function decoder(format: NarrowFormat): string {
  return `
fn ${format.id}_bits_to_f32(h: u32) -> f32 {
  let t = h << ${32 - format.bits}u;
${decoding(format, one)}}
`;
}

/** Declares `fn decode4_<name>(q: u32) -> vec4f`, or of `vec2u` for 16 bits. */
export function decoder4(format: NarrowFormat): string {
  const { name, bits } = format;
  const top = 32 - bits;
  const codes =
    bits === 16
      ? "q.xxyy << vec4u(16u, 0u, 16u, 0u)"
      : `vec4u(q) << vec4u(${top}u, ${top - bits}u, ${top - 2 * bits}u, ${top - 3 * bits}u)`;
  return `
fn decode4_${name}(q: ${bits === 16 ? "vec2u" : "u32"}) -> vec4f {
  let t = ${codes};
${decoding(format, four)}}
`;
}

/**
 * From `x` to `code`. The significand m, an integer of 24 bits, counts the format's units when its lowest d bits are rounded
 * away: d is constant for normal results and grows as subnormal ones shrink. That count, with the exponents above the
 * smallest normal one added, is the code; a carry out of the significand raises the exponent by itself.
 */
function encoding(format: NarrowFormat, variant: EncodeVariant, { uint, k }: Width): string {
  const { bits, mantissaBits, bias, largest, nan } = format;
  const smallestNormal = 128 - bias;
  const d = 23 - mantissaBits + smallestNormal;
  const limit = variant.saturate || nan === undefined ? largest : largest + 1;
  // Magnitudes that shifts of up to 26 round to 0 count as the largest of them: WGSL shifts by 31 at most.
  const least = (d - 26) * 2 ** 23;
  const absolute = `u & ${k(0x7fffffff)}`;
  const sign = `((u >> ${k(32 - bits)}) & ${k(2 ** (bits - 1))})`;
  const aboveInfinity = `a > ${k(0x7f800000)}`;
  const withSign =
    nan === undefined
      ? `select(h | ${sign}, ${k(largest)}, ${aboveInfinity})`
      : `select(h, ${k(nan)}, ${aboveInfinity}) | ${sign}`;
  return `  let u = bitcast<${uint}>(x);
  let a = ${variant.stochastic ? absolute : `max(${absolute}, ${k(least)})`};
  let e = a >> ${k(23)};
  let c = min(e, ${k(smallestNormal)});
  let m = (a & ${k(0x7fffff)}) | ${k(0x800000)};
  let d = ${d}u - c;
${variant.stochastic ? roundStochastically(k) : roundToNearestEven(k)}  let h = min(((e - c) << ${k(mantissaBits)}) + r, ${k(limit)});
  let code = ${withSign};
`;
}

/** Half a unit less one, plus the bit that will be last, carries from the middle up into odd counts only. */
const roundToNearestEven = (k: Width["k"]): string =>
  `  let r = (m + (${k(0xffffffff)} >> (33u - d)) + ((m >> d) & ${k(1)})) >> d;\n`;

/** Of more than 31 discarded bits nothing remains but a carry, from a fraction of 32 bits and as many random ones. */
const roundStochastically = (k: Width["k"]): string => `  let b = min(d, ${k(31)});
  let near = (m + (bits & (${k(0xffffffff)} >> (32u - b)))) >> b;
  let far = select(${k(0)}, ${k(1)}, (m >> min(d - 32u, ${k(31)})) > ~bits);
  let r = select(near, far, d > ${k(31)});
`;

/**
 * From codes `t`, whose sign is in bit 31, to the value returned. Aligned to float32, a normal magnitude lacks only the
 * difference of the biases. A subnormal one, which lacks the implied bit, is what it exceeds the smallest normal number by
 * if given that bit.
 */
function decoding(format: NarrowFormat, { float, uint, k }: Width): string {
  const { bits, mantissaBits, bias, largest, nan } = format;
  const exponentBits = bits - 1 - mantissaBits;
  const magnitude = (code: number): number => code * 2 ** (23 - mantissaBits);
  const field = (exponent: number): number => exponent * 2 ** 23;
  // Infinity and NaN keep their mantissa; the one NaN of a format without infinity becomes the quiet one.
  const special =
    nan === largest + 1 ? 0x7fc00000 - magnitude(nan) : field(256 - 2 ** exponentBits);
  const rebias =
    nan === undefined
      ? k(field(127 - bias))
      : `select(${k(field(127 - bias))}, ${k(special)}, a >= ${k(magnitude(largest + 1))})`;
  return `  let a = (t >> ${k(8 - exponentBits)}) & ${k(magnitude(2 ** (bits - 1) - 1))};
  let n = a + ${rebias};
  let s = bitcast<${uint}>(bitcast<${float}>(a + ${k(field(128 - bias))}) - 0x1p${1 - bias}f);
  return bitcast<${float}>((t & ${k(0x80000000)}) | select(n, s, a < ${k(0x800000)}));
`;
}
