import {
  bytesPerElement,
  type DType,
  type Float8DType,
  floatingDTypes,
  type HalfDType,
  isFloat8,
  type KernelBinding,
  type KernelScalar,
  type ProgramContext,
} from "@halfstep/device";
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
import type { Woven } from "../woven-definition.js";
import { twinOf, wovenName } from "../woven-names.js";

/**
 * WGSL through which a kernel accesses its buffers, independent of their storage. For a binding `x` of unit 4 (quads of elements):
 *
 * - `load_x(q: u32) -> vec4f` and `store_x(q: u32, v: vec4f)` move elements 4q … 4q+3;
 * - `at_x(i: u32) -> f32` reads one element.
 *
 * Unit 2 moves `vec2f`, unit 1 moves `f32`; integer bindings move `u32`/`i32` vectors. An atomic binding has `at_x`, `or_x(i: u32,
 * bits: u32)`, `add_x(i: u32, count: u32)` and `max_x(i: u32, value: u32)` instead. Sixteen-bit stores round to nearest even by
 * integer arithmetic, because WGSL does not define the rounding of its conversions. Eight-bit stores also saturate.
 *
 * A result with a twin is also stored in the twin, and an observer is called with the stored values. The function `woven_finished`
 * applies the epilogue of a kernel whose store has one. An accumulated result is stored as the sum of its new and its old value.
 */
export function storageDeclarations(
  bindings: readonly KernelBinding[],
  context: ProgramContext,
  decoding: Decoding,
  { twinsOf = [], observed, accumulated }: Woven,
  isFinished: boolean,
): string {
  const own = observed ? bindings.slice(0, -1) : bindings;
  const result = own.length - twinsOf.length - 1;
  const isKept = (index: number): boolean =>
    isCpu(context) &&
    index >= decoding.factors &&
    context.bindings[index]?.dtype === "float16" &&
    bindings[index]?.access !== "write";
  const declarations = bindings.map(({ name }, index) => {
    const twin = twinsOf.includes(name) ? twinOf(name) : undefined;
    return declareBinding(bindings, context, index, {
      isKept: isKept(index),
      twin,
      isFinished: isFinished && index === result,
      isObserved: observed?.results.includes(name) ?? false,
      ...(accumulated?.has(name) && {
        added: { rounding: accumulated.get(name), one: decoding.one },
      }),
    });
  });
  const keeping = bindings.some((_, index) => isKept(index));
  return (keeping ? keepFloat16(bindings, decoding) : "") + declarations.join("");
}

/** The properties that decide how CPU adapters decode float16. */
export interface Decoding {
  /** The number of first bindings that are mostly multiplied and added. */
  readonly factors: number;
  /** The program's scalar that is 1, which compilers do not know. */
  readonly one: string | undefined;
}

/** The narrow formats that a program converts to or from. */
export function narrowFormats(
  context: ProgramContext,
  more: readonly HalfDType[],
): ReadonlySet<HalfDType | Float8DType> {
  const formats = new Set<HalfDType | Float8DType>(more);
  for (const { dtype, rounding } of context.bindings) {
    if (isNarrow(dtype)) formats.add(dtype);
    if (rounding) formats.add(rounding);
  }
  return formats;
}

/** WGSL conversions between float32 and these formats, and `round4_…` functions, which combine both directions. */
export function conversionFunctions(
  formats: ReadonlySet<HalfDType | Float8DType>,
  context: ProgramContext,
): string {
  let code = "";
  if (formats.has("float16")) {
    code += loadFloat16(context.tier) + round4Float16 + roundFewer("float16");
    code += isCpu(context) ? encodeFloat16OnCpu : encode4Float16;
  }
  if (formats.has("bfloat16"))
    code +=
      encode4Bfloat16 + decode4Bfloat16 + loadBfloat16 + round4Bfloat16 + roundFewer("bfloat16");
  if (formats.has("float8e4m3fn"))
    code += encode4Float8e4m3fnSaturate + decode4Float8e4m3fn + decodeFloat8e4m3fn;
  if (formats.has("float8e5m2"))
    code += encode4Float8e5m2Saturate + decode4Float8e5m2 + decodeFloat8e5m2;
  return code;
}

/** The uniform `s` that holds the scalars, bound after the last buffer. */
export function scalarDeclarations(scalars: readonly KernelScalar[], binding: number): string {
  if (scalars.length === 0) return "";
  const members = scalars.map(({ name, type }) => `${name}: ${type}`).join(", ");
  return `struct Scalars { ${members} }\n@group(0) @binding(${binding}) var<uniform> s: Scalars;\n`;
}

// Hardware conversions are exact when widening. Only they are fast enough for inner loops.
const loadFloat16 = (tier: "native" | "packed"): string =>
  tier === "native"
    ? `fn quad_float16(q: vec2u) -> vec4f { return vec4f(bitcast<vec4<f16>>(q)); }
fn pair_float16(w: u32) -> vec2f { return vec2f(bitcast<vec2<f16>>(w)); }
`
    : `fn quad_float16(q: vec2u) -> vec4f { return vec4f(unpack2x16float(q.x), unpack2x16float(q.y)); }
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

/**
 * Float16 for kernels that compare loaded values. Compilers for CPUs move a comparison before the conversion of its operands, to
 * float16, where it takes a call for each element. A multiplication by a one that the compiler does not know prevents this. The one
 * comes from a scalar, or from the number of elements of a buffer, which is never 0.
 */
function keepFloat16(bindings: readonly KernelBinding[], { one: scalar }: Decoding): string {
  const one = scalar
    ? `s.${scalar}`
    : `bitcast<f32>(min(arrayLength(&${bindings[0]?.name}_data), 1u) * 0x3f800000u)`;
  return `fn kept_quad_float16(q: vec2u) -> vec4f { return quad_float16(q) * ${one}; }
fn kept_pair_float16(w: u32) -> vec2f { return pair_float16(w) * ${one}; }
`;
}

const loadBfloat16 = `fn quad_bfloat16(q: vec2u) -> vec4f { return decode4_bfloat16(q); }
fn pair_bfloat16(w: u32) -> vec2f { return bitcast<vec2f>(vec2u(w << 16u, w & 0xffff0000u)); }
`;

const roundFewer = (format: HalfDType): string =>
  `fn round2_${format}(v: vec2f) -> vec2f { return round4_${format}(vec4f(v, v)).xy; }
fn round1_${format}(v: f32) -> f32 { return round4_${format}(vec4f(v)).x; }
`;

/** How a result is added to the existing one: the format to which it is rounded first, and the scalar that is 1. */
interface Added {
  readonly rounding: HalfDType | undefined;
  readonly one: string | undefined;
}

function declareBinding(
  bindings: readonly KernelBinding[],
  context: ProgramContext,
  index: number,
  {
    isKept,
    twin,
    isFinished,
    isObserved,
    added,
  }: {
    readonly isKept: boolean;
    readonly twin: string | undefined;
    readonly isFinished: boolean;
    readonly isObserved: boolean;
    readonly added?: Added;
  },
): string {
  const { name, access, unit = 4, atomic, dtypes } = bindings[index] as KernelBinding;
  const storage = context.bindings[index];
  if (!storage) throw new RangeError(`binding ${name} has no storage in the program context`);
  const { dtype, rounding } = storage;
  const accepted = dtypes ?? floatingDTypes;
  if (!accepted.includes(dtype))
    throw new TypeError(`binding ${name} accepts ${accepted.join(", ")}, not ${dtype}`);
  if (atomic)
    return `@group(0) @binding(${index}) var<storage, read_write> ${name}_data: array<atomic<u32>>;
fn at_${name}(i: u32) -> u32 { return atomicLoad(&${name}_data[i]); }
fn or_${name}(i: u32, bits: u32) { atomicOr(&${name}_data[i], bits); }
fn add_${name}(i: u32, count: u32) { atomicAdd(&${name}_data[i], count); }
fn max_${name}(i: u32, value: u32) { atomicMax(&${name}_data[i], value); }
`;
  const isHalf = dtype === "float16" || dtype === "bfloat16";
  const perWord = 4 / bytesPerElement(dtype);
  if (unit < perWord && access !== "read")
    throw new TypeError(
      `binding ${name} stores ${unit === 1 ? "one element" : "two elements"} at a time, which ${32 / perWord}-bit storage cannot`,
    );
  const scalar = dtype === "uint32" ? "u32" : dtype === "int32" ? "i32" : "f32";
  const value = unit === 1 ? scalar : `vec${unit}<${scalar}>`;
  const element = isFloat8(dtype) ? "u32" : isHalf ? (unit === 4 ? "vec2u" : "u32") : value;
  const mode = access === "read" ? "read" : "read_write";
  const round = rounding ? (v: string) => `round${unit}_${rounding}(${v})` : (v: string) => v;
  const roundOne = rounding ? (v: string) => `round1_${rounding}(${v})` : (v: string) => v;

  let code = `@group(0) @binding(${index}) var<storage, ${mode}> ${name}_data: array<${element}>;\n`;
  if (access !== "write") {
    const decoder = isKept ? "kept_" : "";
    const one = oneElement(name, dtype, unit, decoder);
    code += `fn at_${name}(i: u32) -> ${scalar} { return ${roundOne(one)}; }\n`;
    const whole = isNarrow(dtype) ? wholeUnit(name, dtype, unit, one, decoder) : `${name}_data[i]`;
    code += `fn load_${name}(i: u32) -> ${value} { return ${round(whole)}; }\n`;
  }
  if (access !== "read") {
    const packed = isFloat8(dtype)
      ? `encode4_${dtype}_saturate(${round("v")})`
      : isHalf
        ? unit === 4
          ? `encode4_${dtype}(${round("v")})`
          : `encode4_${dtype}(vec4f(${round("v")}, 0.0, 0.0)).x`
        : round("v");
    const again = twin ? ` store_${twin}(i, v);` : "";
    const addend = added ? "addend" : "v";
    const [given, finish] = isFinished
      ? ["result", ` let ${addend} = ${wovenName("finished")}(i, result);`]
      : [addend, ""];
    const add = added ? ` let v = load_${name}(i) + ${asStored("addend", unit, added)};` : "";
    const stored = isObserved ? "stored" : packed;
    const [keep, look] = isObserved
      ? [
          ` let stored = ${packed};`,
          ` ${wovenName("observe")}_${name}(i, ${magnitudesOf(asQuad("v", unit))}, ${magnitudesStored("stored", dtype, unit)});`,
        ]
      : ["", ""];
    code += `fn store_${name}(i: u32, ${given}: ${value}) {${finish}${add}${keep} ${name}_data[i] = ${stored};${look}${again} }\n`;
  }
  return code;
}

/**
 * WGSL: the term of the sum, as if stored and loaded again. The factor 1, unknown to the compiler, prevents it from contracting the
 * value's computation with the sum.
 */
const asStored = (value: string, unit: 1 | 2 | 4, { rounding, one }: Added): string =>
  rounding ? `round${unit}_${rounding}(${value})` : `${value} * s.${one}`;

/** WGSL: one, two or four numbers as a vector of four. */
const asQuad = (value: string, unit: 1 | 2 | 4): string =>
  unit === 4 ? value : unit === 2 ? `${value}.xyxy` : `vec4f(${value})`;

/** WGSL: the magnitudes of four numbers, as bits of float32. */
const magnitudesOf = (quad: string): string => `(bitcast<vec4u>(${quad}) & vec4u(0x7fffffffu))`;

/** WGSL: the stored magnitudes of a unit, as codes of the storage. */
function magnitudesStored(stored: string, dtype: DType, unit: 1 | 2 | 4): string {
  if (isFloat8(dtype)) return `((vec4u(${stored}) >> vec4u(0u, 8u, 16u, 24u)) & vec4u(0x7fu))`;
  if (dtype === "float16" || dtype === "bfloat16")
    return unit === 4
      ? `(vec4u(${stored}.x, ${stored}.x >> 16u, ${stored}.y, ${stored}.y >> 16u) & vec4u(0x7fffu))`
      : `(vec4u(${stored}, ${stored} >> 16u, ${stored}, ${stored} >> 16u) & vec4u(0x7fffu))`;
  return magnitudesOf(asQuad(stored, unit));
}

const isNarrow = (dtype: DType): dtype is HalfDType | Float8DType =>
  dtype === "float16" || dtype === "bfloat16" || isFloat8(dtype);

/** WGSL of unit i of a narrow binding; `one` is the expression of element i. */
function wholeUnit(
  name: string,
  dtype: HalfDType | Float8DType,
  unit: 1 | 2 | 4,
  one: string,
  decoder: string,
): string {
  if (unit === 1) return one;
  if (!isFloat8(dtype))
    return `${decoder}${unit === 4 ? "quad" : "pair"}_${dtype}(${name}_data[i])`;
  const quad = `decode4_${dtype}(${name}_data[i${unit === 4 ? "" : " >> 1u"}])`;
  return unit === 4 ? quad : `select(${quad}.xy, ${quad}.zw, (i & 1u) == 1u)`;
}

function oneElement(name: string, dtype: DType, unit: 1 | 2 | 4, decoder: string): string {
  if (isFloat8(dtype))
    return `${dtype.replace("float", "f")}_bits_to_f32(${name}_data[i >> 2u] >> ((i & 3u) * 8u))`;
  if (dtype === "float16" || dtype === "bfloat16") {
    const word = unit === 4 ? `${name}_data[i >> 2u][(i >> 1u) & 1u]` : `${name}_data[i >> 1u]`;
    return `${decoder}pair_${dtype}(${word} >> ((i & 1u) * 16u)).x`;
  }
  if (unit === 1) return `${name}_data[i]`;
  return unit === 2 ? `${name}_data[i >> 1u][i & 1u]` : `${name}_data[i >> 2u][i & 3u]`;
}
