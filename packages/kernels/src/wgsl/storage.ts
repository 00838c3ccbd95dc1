import type { HalfDType, KernelBinding, KernelScalar, ProgramContext } from "@halfstep/device";
import {
  allDTypes,
  dtypes,
  floatingDTypes,
  isNarrow,
  type NarrowDType,
} from "@halfstep/formats/dtypes";
import { isCpu } from "../cpu-adapter.js";
import { domainOf, scalarType } from "../domain.js";
import type { Woven } from "../woven-definition.js";
import { twinOf, wovenName } from "../woven-names.js";
import { asQuad, elementWgsl, magnitudesOf } from "./elements.js";
import { pairStorage, type StoredUnit } from "./pair-storage.js";

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
 *
 * @param finished the index of the binding whose store applies an epilogue.
 */
export function storageDeclarations(
  bindings: readonly StorageBinding[],
  context: ProgramContext,
  decoding: Decoding,
  { twinsOf = [], observed, accumulated }: Woven,
  finished: number | undefined,
): string {
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
      isFinished: index === finished,
      isObserved: observed?.results.includes(name) ?? false,
      ...(accumulated?.has(name) && {
        added: { rounding: accumulated.get(name), one: decoding.one },
      }),
    });
  });
  const keeping = bindings.some((_, index) => isKept(index));
  return (keeping ? keepFloat16(bindings, decoding) : "") + declarations.join("");
}

/** A binding of a program. */
export interface StorageBinding extends KernelBinding {
  /** Elements that the program copies at a time, as they are stored: `stored_x(i)` is all that it gets. */
  readonly copied?: 4 | 8 | undefined;
  /** True where the program moves pairs of quads of 16-bit elements, as {@link pairStorage} tells. */
  readonly inPairs?: boolean | undefined;
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
): ReadonlySet<NarrowDType> {
  const formats = new Set<NarrowDType>(more);
  for (const { dtype, rounding } of context.bindings) {
    if (isNarrow(dtype)) formats.add(dtype);
    if (rounding) formats.add(rounding);
  }
  return formats;
}

/** WGSL conversions between float32 and these formats, and `round4_…` functions, which combine both directions. */
export const conversionFunctions = (
  formats: ReadonlySet<NarrowDType>,
  context: ProgramContext,
): string =>
  allDTypes
    .filter((dtype) => isNarrow(dtype) && formats.has(dtype))
    .map((dtype) => elementWgsl[dtype].conversions(context))
    .join("");

/** The uniform `s` that holds the scalars, bound after the last buffer. */
export function scalarDeclarations(scalars: readonly KernelScalar[], binding: number): string {
  if (scalars.length === 0) return "";
  const members = scalars.map(({ name, type }) => `${name}: ${type}`).join(", ");
  return `struct Scalars { ${members} }\n@group(0) @binding(${binding}) var<uniform> s: Scalars;\n`;
}

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

/** What is woven into the store of a binding. */
interface Storing {
  readonly twin: string | undefined;
  readonly isFinished: boolean;
  readonly isObserved: boolean;
  readonly added?: Added | undefined;
}

/** How a result is added to the existing one: the format to which it is rounded first, and the scalar that is 1. */
interface Added {
  readonly rounding: HalfDType | undefined;
  readonly one: string | undefined;
}

function declareBinding(
  bindings: readonly StorageBinding[],
  context: ProgramContext,
  index: number,
  { isKept, ...storing }: Storing & { readonly isKept: boolean },
): string {
  const {
    name,
    access,
    unit = 4,
    atomic,
    copied,
    inPairs,
    dtypes: accepted = floatingDTypes,
  } = bindings[index] as StorageBinding;
  const { dtype, rounding } = context.bindings[index] as ProgramContext["bindings"][number];
  if (!accepted.includes(dtype))
    throw new TypeError(`binding ${name} accepts ${accepted.join(", ")}, not ${dtype}`);
  if (atomic)
    return `@group(0) @binding(${index}) var<storage, read_write> ${name}_data: array<atomic<u32>>;
fn at_${name}(i: u32) -> u32 { return atomicLoad(&${name}_data[i]); }
fn or_${name}(i: u32, bits: u32) { atomicOr(&${name}_data[i], bits); }
fn add_${name}(i: u32, count: u32) { atomicAdd(&${name}_data[i], count); }
fn max_${name}(i: u32, value: u32) { atomicMax(&${name}_data[i], value); }
`;
  const { bits } = dtypes[dtype];
  if (copied) {
    const type = `vec${(copied * bits) / 32}<${bits === 32 ? "f32" : "u32"}>`;
    return `@group(0) @binding(${index}) var<storage, read> ${name}_data: array<${type}>;
fn stored_${name}(i: u32) -> ${type} { return ${name}_data[i]; }
`;
  }
  if (unit * bits < 32 && access !== "read")
    throw new TypeError(
      `binding ${name} stores ${unit === 1 ? "one element" : "two elements"} at a time, which ${bits}-bit storage cannot`,
    );
  const wgsl = elementWgsl[dtype];
  const data = `${name}_data`;
  const scalar = scalarType(domainOf(dtype));
  const value = unit === 1 ? scalar : `vec${unit}<${scalar}>`;
  const mode = access === "read" ? "read" : "read_write";
  const round = rounding ? (v: string) => `round${unit}_${rounding}(${v})` : (v: string) => v;
  const roundOne = rounding ? (v: string) => `round1_${rounding}(${v})` : (v: string) => v;

  const stored: StoredUnit = {
    ...{ store: "store", type: value, loaded: `load_${name}(i)` },
    rounded: (v, format) => `round${unit}_${format}(${v})`,
    packed: (v) => wgsl.store(round(v), unit),
    write: (words) => `${data}[i] = ${words};`,
    observed: (at, v, words) => [
      `${at}, ${magnitudesOf(asQuad(v, unit))}, ${wgsl.magnitudes(words, unit)}`,
    ],
  };
  const head = `@group(0) @binding(${index}) var<storage, ${mode}> ${data}: array<`;
  if (inPairs) {
    const { load, whole, first } = pairStorage(data, dtype as HalfDType, stored);
    return (
      `${head}vec4u>;\n` +
      (access === "write" ? "" : `fn load_${name}(i: u32) -> mat2x4f { ${load} }\n`) +
      (access === "read" ? "" : storeFunction(name, whole, storing)) +
      // With an epilogue there are only whole pairs.
      (access === "read" || storing.isFinished ? "" : storeFunction(name, first, storing))
    );
  }
  let code = `${head}${wgsl.array(unit)}>;\n`;
  if (access !== "write") {
    const decoder = isKept ? "kept_" : "";
    code += `fn at_${name}(i: u32) -> ${scalar} { return ${roundOne(wgsl.at(data, unit, decoder))}; }\n`;
    code += `fn load_${name}(i: u32) -> ${value} { return ${round(wgsl.load(data, unit, decoder))}; }\n`;
  }
  if (access !== "read") code += storeFunction(name, stored, storing);
  return code;
}

/** WGSL of a function that stores a unit of a binding as its storage wants it, with what is woven into the store. */
function storeFunction(
  name: string,
  { store, type, loaded, rounded, packed, write, observed }: StoredUnit,
  { twin, isFinished, isObserved, added }: Storing,
): string {
  const again = twin ? ` ${store}_${twin}(i, v);` : "";
  const addend = added ? "addend" : "v";
  const [given, finish] = isFinished
    ? ["result", ` let ${addend} = ${wovenName("finished")}(i, result);`]
    : [addend, ""];
  // The term as if stored and loaded again. The factor 1, unknown to the compiler, prevents it from contracting the value's computation
  // with the sum.
  const term = added?.rounding ? rounded(addend, added.rounding) : `${addend} * s.${added?.one}`;
  const add = added ? ` let v = ${loaded} + ${term};` : "";
  const [keep, stored] = isObserved
    ? [` let stored = ${packed("v")};`, "stored"]
    : ["", packed("v")];
  const look = isObserved
    ? observed("i", "v", stored)
        .map((unit) => ` ${wovenName("observe")}_${name}(${unit});`)
        .join("")
    : "";
  return `fn ${store}_${name}(i: u32, ${given}: ${type}) {${finish}${add}${keep} ${write(stored)}${look}${again} }\n`;
}
