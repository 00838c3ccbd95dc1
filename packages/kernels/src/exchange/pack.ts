import type { Binding, KernelBinding, KernelView, Launch } from "@halfstep/device";
import { isCpu } from "../cpu-adapter.js";
import type { KernelDefinition } from "../definition.js";
import { defineKernel } from "../kernel.js";

const groupSize = 64;

/** Most workgroups of a launch: 65,536 invocations, which keep the memory of a large GPU busy. CPU adapters take longer with more of them. */
const mostGroups = 1024;
const mostGroupsOnCpu = 16;

/** Groups of four numbers that an invocation moves at least, where the range has them. */
const quadsEach = 8;

/** Workgroups of each launch, and partial findings: one for each workgroup of the first launch. */
const workgroups: KernelDefinition["workgroups"] = ({ count }, _, context) => {
  const needed = Math.ceil((count as number) / (4 * quadsEach * groupSize));
  const most = isCpu(context) ? mostGroupsOnCpu : mostGroups;
  return [Math.min(Math.max(needed, 1), most), 1, 1];
};

/** Uint32 words of scratch that {@link packHalves} needs. */
export const packScratchWords: number = mostGroups;

/**
 * Uint32 words of the header of packed numbers: the exponent of the power of two by which they were multiplied, as an int32, and 1 where a
 * number was infinite or NaN.
 */
export const packHeaderWords: number = 2;

const infinityBits = 0x7f80_0000;
/** In a partial finding beside the magnitude, which has 31 bits. */
const nonFiniteBit = 0x8000_0000;

/** Largest shift: numbers times 2^126 and times 2^−126 are exact where they are normal. */
const largestShift = 126;
/** The largest number comes to lie near 2^14: rounding does not reach the end of float16's range. */
const targetExponent = 14;
const exponentBias = 127;

const words = (name: string, access: KernelBinding["access"]): KernelBinding => ({
  ...{ name, access },
  unit: 1,
  dtypes: ["uint32"],
});
const count = { name: "count", type: "u32" } as const;

const main = `@compute @workgroup_size(${groupSize})
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) local: u32) {`;

const forEachQuad = (statements: string): string => `
  for (var q = group.x * ${groupSize}u + local; q * 4u < s.count; q += groups.x * ${groupSize}u) {
    let inside = (vec4u(q * 4u) + vec4u(0u, 1u, 2u, 3u)) < vec4u(s.count);
    ${statements}
  }`;

/** WGSL: every invocation contributes `own`. The first one then has the findings of its workgroup in `all`. */
const gather = `gathered[local] = own;
  workgroupBarrier();
  var all = 0u;
  if (local == 0u) {
    for (var i = 0u; i < ${groupSize}u; i++) { all = joined(all, gathered[i]); }
  }`;

const memory = `var<workgroup> gathered: array<u32, ${groupSize}>;
var<workgroup> found: u32;
fn joined(a: u32, b: u32) -> u32 {
  return max(a & ${nonFiniteBit - 1}u, b & ${nonFiniteBit - 1}u) | ((a | b) & ${nonFiniteBit}u);
}
`;

const largestKernel = defineKernel({
  name: "largest-magnitude",
  bindings: [{ name: "x", access: "read", dtypes: ["float32"] }, words("partials", "write")],
  scalars: [count],
  // Bits are compared, because WGSL compilers may assume that no float is infinite or NaN.
  body: () => `${memory}${main}
  var largest = vec4u();
  var bad = false;
  ${forEachQuad(`let bits = select(vec4u(), bitcast<vec4u>(load_x(q)) & vec4u(0x7fffffffu), inside);
    let is_bad = bits >= vec4u(${infinityBits}u);
    bad = bad | any(is_bad);
    largest = max(largest, select(bits, vec4u(), is_bad));`)}
  let own = max(max(largest.x, largest.y), max(largest.z, largest.w)) | select(0u, ${nonFiniteBit}u, bad);
  ${gather}
  if (local == 0u) { store_partials(group.x, all); }
}
`,
  workgroups,
  reference([x, partials]) {
    let largest = 0;
    let bad = 0;
    const bits = new Uint32Array(1);
    const value = new Float32Array(bits.buffer);
    for (const each of x as KernelView) {
      value[0] = each;
      const magnitude = (bits[0] as number) & 0x7fff_ffff;
      if (magnitude >= infinityBits) bad = nonFiniteBit;
      else largest = Math.max(largest, magnitude);
    }
    partials?.fill(0);
    if (partials) partials[0] = largest + bad;
  },
});

const packKernel = defineKernel({
  name: "pack-halves",
  bindings: [
    { name: "x", access: "read", dtypes: ["float32"] },
    words("partials", "read"),
    { name: "codes", access: "write", dtypes: ["float16", "bfloat16"] },
    words("header", "write"),
  ],
  scalars: [count],
  body: () => `${memory}${main}
  var own = 0u;
  for (var i = local; i < groups.x; i += ${groupSize}u) { own = joined(own, at_partials(i)); }
  ${gather}
  if (local == 0u) { found = all; }
  workgroupBarrier();
  let largest = found & ${nonFiniteBit - 1}u;
  let exponent = i32(max(largest >> 23u, 1u)) - ${exponentBias};
  let shift = select(min(${targetExponent} - exponent, ${largestShift}), ${largestShift}, largest == 0u);
  let factor = bitcast<f32>(u32(shift + ${exponentBias}) << 23u);
  if ((group.x == 0u) & (local == 0u)) {
    store_header(0u, bitcast<u32>(shift));
    store_header(1u, found >> 31u);
  }
  ${forEachQuad("store_codes(q, load_x(q) * factor);")}
}
`,
  workgroups,
  reference([x, partials, codes, header]) {
    let largest = 0;
    let bad = 0;
    for (const each of partials as KernelView) {
      largest = Math.max(largest, each & 0x7fff_ffff);
      if (each >= nonFiniteBit) bad = 1;
    }
    const exponent = Math.max(largest >>> 23, 1) - exponentBias;
    const shift = largest === 0 ? largestShift : Math.min(targetExponent - exponent, largestShift);
    if (header) [header[0], header[1]] = [shift >>> 0, bad];
    for (let i = 0; x && codes && i < x.length; i++)
      codes[i] = Math.fround((x[i] as number) * 2 ** shift);
  },
});

const unpackKernel = defineKernel({
  name: "unpack-halves",
  bindings: [
    { name: "codes", access: "read", dtypes: ["float16", "bfloat16"] },
    words("header", "read"),
    { name: "x", access: "readwrite", dtypes: ["float32"] },
  ],
  scalars: [count],
  // A range may end inside a quad, whose other elements belong to another range.
  body: () => `${main}
  let factor = bitcast<f32>(u32(${exponentBias} - bitcast<i32>(at_header(0u))) << 23u);
  let first = select(vec4<bool>(), vec4<bool>(true, false, false, false), at_header(1u) != 0u);
  ${forEachQuad(`let bits = select(bitcast<vec4u>(load_codes(q) * factor), vec4u(0x7fc00000u), first & vec4<bool>(q == 0u));
    store_x(q, bitcast<vec4f>(select(bitcast<vec4u>(load_x(q)), bits, inside)));`)}
}
`,
  workgroups,
  reference([codes, header, x]) {
    const factor = 2 ** -((header?.[0] as number) | 0);
    for (let i = 0; codes && x && i < x.length; i++)
      x[i] = Math.fround((codes[i] as number) * factor);
    if (header?.[1] !== 0 && x && x.length > 0) x[0] = Number.NaN;
  },
});

/**
 * Multiplies float32 numbers by a power of two, so that the largest finite one comes to lie near the end of float16's range, and stores them
 * in 16 bits. Two launches. `codes` has the dtype of the numbers in 16 bits and `header` {@link packHeaderWords} words; infinities and NaN
 * stay what they are.
 */
export function packHalves<B>(operands: {
  readonly x: Binding<B>;
  readonly codes: Binding<B>;
  readonly header: B;
  /** {@link packScratchWords} words. */
  readonly scratch: B;
}): readonly [Launch<B>, Launch<B>] {
  const { x, codes, header, scratch } = operands;
  const partials = wordsIn(scratch, packScratchWords);
  const scalars = { count: x.length };
  return [
    { kernel: largestKernel, bindings: [x, partials], scalars },
    { kernel: packKernel, bindings: [x, partials, codes, headerOf(header)], scalars },
  ];
}

/** The inverse of {@link packHalves}. Where the header's second word is not 0, the first number becomes NaN. */
export function unpackHalves<B>(operands: {
  readonly codes: Binding<B>;
  readonly header: B;
  readonly x: Binding<B>;
}): Launch<B> {
  const { codes, header, x } = operands;
  return {
    kernel: unpackKernel,
    bindings: [codes, headerOf(header), x],
    scalars: { count: x.length },
  };
}

const headerOf = <B>(buffer: B): Binding<B> => wordsIn(buffer, packHeaderWords);

const wordsIn = <B>(buffer: B, length: number): Binding<B> => ({
  ...{ buffer, offset: 0, length },
  dtype: "uint32",
});
