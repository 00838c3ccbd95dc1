import type { KernelView } from "@halfstep/device";
import { bitsOf, floatOf } from "./bits.js";

/**
 * Moments in 8 bits. Blocks of up to 256 elements of one parameter have a float32 `peak`, the largest magnitude. Each element has a byte:
 * its magnitude relative to the peak, on a logarithmic scale with eight steps an octave:
 *
 * - signed: bit 7 is the sign, and code c of the other seven is the float32 whose upper 12 bits are `c + 889`, so that 127
 *   is 1 and 1 is 2^-15.75;
 * - unsigned: code c is the float32 whose upper 12 bits are `c + 761`, so that 255 is 1 and 1 is 2^-31.75.
 *
 * Code 0 is 0. Rounding is stochastic between the two codes next to the float32's bits, with the right mean: rounded to nearest, an average
 * that changes by less than 1/16 a step would never change. The error is less than 1/8. An unsigned number that is not 0 never becomes 0,
 * because a zero second moment makes a huge step of a nonzero first moment.
 *
 * In memory a block is 65 words: the bits of the peak, then 64 words of four codes.
 */
export const blockLength = 256;
/** Words of memory that a block of `blockLength` moments takes: its peak, and four codes a word. */
export const blockWords = 65;

/** Code of 1 in the upper bits of a float32, less the largest code of each map. */
const offsetOf = { signed: 889, unsigned: 761 } as const;
const largestOf = { signed: 127, unsigned: 255 } as const;

type Sign = keyof typeof offsetOf;

/** Declares `decode8_…(codes: u32, peak: f32) -> vec4f` and `encode8_…(v: vec4f, peak: f32, random: vec4u) -> u32` of one map. */
export function blockwiseWgsl(sign: Sign): string {
  const isSigned = sign === "signed";
  const offset = offsetOf[sign];
  const largest = largestOf[sign];
  return /* wgsl */ `
fn decode8_${sign}(codes: u32, peak: f32) -> vec4f {
  let c = (vec4u(codes) >> vec4u(0u, 8u, 16u, 24u)) & vec4u(0xffu);
  let m = c & vec4u(${largest}u);
  let bits = select((m + ${offset}u) << vec4u(20u), vec4u(), m == vec4u());
  return bitcast<vec4f>(bits${isSigned ? " | ((c & vec4u(0x80u)) << vec4u(24u))" : ""}) * peak;
}
fn encode8_${sign}(v: vec4f, peak: f32, random: vec4u) -> u32 {
  let x = min(abs(v) * (1.0 / peak), vec4f(1.0));
  let bits = bitcast<vec4u>(x);
  let rounded = (bits + (random & vec4u(0xfffffu))) >> vec4u(20u);
  var m = min(max(rounded, vec4u(${offset}u)) - ${offset}u, vec4u(${largest}u));
  ${isSigned ? "m |= (bitcast<vec4u>(v) >> vec4u(24u)) & vec4u(0x80u);" : "m = select(m, vec4u(1u), (m == vec4u()) & (v > vec4f()));"}
  let c = m << vec4u(0u, 8u, 16u, 24u);
  return (c.x | c.y) | (c.z | c.w);
}
`;
}

/** Magnitudes below this are 0: their reciprocal would be infinite. */
export const smallestPeakBits = 0x0080_0000;

/** Decodes `length` elements of block `block` into `out`. */
export function decodeBlock(
  words: KernelView,
  block: number,
  sign: Sign,
  length: number,
  out: Float64Array,
): void {
  const base = block * blockWords;
  const peak = floatOf(words[base] as number);
  const largest = largestOf[sign];
  const offset = offsetOf[sign];
  for (let i = 0; i < length; i++) {
    const code = ((words[base + 1 + (i >> 2)] as number) >>> ((i & 3) * 8)) & 0xff;
    const m = code & largest;
    const magnitude = m === 0 ? 0 : floatOf((m + offset) << 20);
    out[i] = Math.fround((code > largest ? -magnitude : magnitude) * peak);
  }
}

/** Encodes `length` numbers as block `block`, with a u32 of random bits for each. */
export function encodeBlock(
  words: KernelView,
  block: number,
  sign: Sign,
  length: number,
  values: Float64Array,
  randomOf: (index: number) => number,
): void {
  const base = block * blockWords;
  const largest = largestOf[sign];
  const offset = offsetOf[sign];
  let peakBits = 0;
  for (let i = 0; i < length; i++)
    peakBits = Math.max(peakBits, bitsOf(values[i] as number) & 0x7fffffff);
  words.fill(0, base, base + blockWords);
  if (peakBits < smallestPeakBits) return;
  words[base] = peakBits;
  const inverse = Math.fround(1 / floatOf(peakBits));
  for (let i = 0; i < length; i++) {
    const value = values[i] as number;
    const bits = bitsOf(Math.min(Math.fround(Math.abs(Math.fround(value)) * inverse), 1));
    const rounded = (bits + (randomOf(i) & 0xfffff)) >>> 20;
    let code = Math.min(Math.max(rounded, offset) - offset, largest);
    if (sign === "signed") code |= (bitsOf(value) >>> 24) & 0x80;
    else if (code === 0 && value > 0) code = 1;
    const at = base + 1 + (i >> 2);
    words[at] = ((words[at] as number) | (code << ((i & 3) * 8))) >>> 0;
  }
}
