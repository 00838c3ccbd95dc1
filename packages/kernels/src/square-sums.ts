import type { KernelView } from "@halfstep/device";

/**
 * Sums of squares of float32 numbers that neither overflow nor underflow. Float32 can represent the squares of numbers from 2^-63 to 2^64
 * only. So there are three sums: of the squares, and of the squares of the numbers times 2^-80 and 2^72 respectively. Factors that are
 * powers of two change no rounding: the sum that fits has the same bits as a sum of unlimited range.
 */
export const squareSums = 3;

/** The sum from numbers × 2^-80 is used for sums of squares from this one on, and that from numbers × 2^72 below the next constant. */
const largeFrom = 2 ** 112;
const smallBelow = 2 ** -64;
const largeScale = 2 ** -80;
const smallScale = 2 ** 72;

/** A power of two as WGSL: itself, its exponent, and its bits. */
const powerOf = (value: number): string => `0x1p${Math.log2(value)}f`;
const octavesOf = (value: number): string => `${Math.log2(value)}u`;
const bitsOf = (value: number): string => `${(Math.log2(value) + 127) * 2 ** 23}u`;

/**
 * WGSL `lowered(v, octaves)`: v × 2^-octaves, by integers, so that a compiler cannot multiply in another order; 0 where the result is
 * subnormal.
 */
export const loweredWgsl: string = /* wgsl */ `
fn lowered(v: vec4f, octaves: u32) -> vec4f {
  let bits = bitcast<vec4u>(v);
  let field = bits & vec4u(0x7f800000u);
  let less = select(vec4u(), bits - vec4u(octaves << 23u), field > vec4u(octaves << 23u));
  return bitcast<vec4f>(select(less, bits, field == vec4u(0x7f800000u)));
}
`;

/**
 * WGSL `squares_of(v)`: the terms of a quad for a `mat3x4f` of the three sums; `total_of(sums)`: the sums over all lanes; `sums_of(sum)`:
 * the three sums where the plain sum `fits`, without the last, which is then unused. Numbers that are too large for the last sum are
 * clamped, so that it stays finite: compilers may assume finite numbers.
 */
export const squareSumsWgsl: string = /* wgsl */ `${loweredWgsl}
fn squares_of(v: vec4f) -> mat3x4f {
  let large = lowered(v, ${octavesOf(1 / largeScale)});
  let bits = min(bitcast<vec4u>(v) & vec4u(0x7fffffffu), vec4u(${bitsOf(Math.sqrt(smallBelow))}));
  let small = bitcast<vec4f>(select(vec4u(), bits + vec4u(${octavesOf(smallScale)} << 23u), bits >= vec4u(0x00800000u)));
  return mat3x4f(v * v, large * large, small * small);
}
fn total_of(sums: mat3x4f) -> vec3f {
  let lanes = transpose(sums);
  return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}
fn fits(sum: f32) -> bool {
  let bits = bitcast<u32>(sum);
  return bits >= ${bitsOf(smallBelow)} && bits < ${bitsOf(largeFrom)};
}
fn sums_of(sum: f32) -> vec3f { return vec3f(sum, lowered(vec4f(sum), ${octavesOf(1 / largeScale ** 2)}).x, 0.0); }
`;

/**
 * WGSL: declares `total`, the three sums of the squares of all quads `value` in `loop`. The loop runs a second time only where the plain
 * sum does not fit, unless `isZero` shows that all numbers are 0.
 */
export const sumSquaresWgsl = (
  loop: (statements: string) => string,
  value: string,
  { before = "", isZero = "false" }: { readonly before?: string; readonly isZero?: string } = {},
): string => /* wgsl */ `
  var plain = vec4f();
  ${loop(`${before} let g = ${value}; plain += g * g;`)}
  var total = sums_of((plain.x + plain.y) + (plain.z + plain.w));
  if (!fits(total.x) && !(${isZero})) {
    var sums = mat3x4f();
    ${loop(`sums += squares_of(${value});`)}
    total = total_of(sums);
  }
`;

/**
 * WGSL: a norm as bits, and the factor that limits it to `most`. The factor is a pair, because the product of the two may be subnormal,
 * which GPUs may flush to 0.
 *
 * `clip_by(norm, most, eps)` takes a finite norm, `clip_of_other(bits)` an infinite one (factor 0) or NaN, and `clip_of_squares(total,
 * most, eps)` the result of `total_of`. `factor_bits(clip)` is the product of both factors as bits, rounded where it is subnormal.
 */
export const clipWgsl: string = /* wgsl */ `
struct Clip { norm: u32, coarse: f32, fine: f32 }
fn clip_of_large(root: f32, most: f32) -> Clip {
  let norm = select(bitcast<u32>(root * ${powerOf(1 / largeScale)}), 0x7f800000u, root >= ${powerOf(2 ** 128 * largeScale)});
  if (most * ${powerOf(largeScale)} >= root) { return Clip(norm, 1.0, 1.0); }
  let fine = (most * 0x1p-16f) / root;
  if (fine < 1.0) { return Clip(norm, 0x1p-64f, fine); }
  return Clip(norm, 1.0, fine * 0x1p-64f);
}
fn clip_by(norm: f32, most: f32, eps: f32) -> Clip {
  if (norm >= ${powerOf(Math.sqrt(largeFrom))}) { return clip_of_large(norm * ${powerOf(largeScale)}, most); }
  let divisor = norm + eps;
  var factor = 1.0;
  if (divisor > most) { factor = most / divisor; }
  if (factor < 0x1p-64f) { return Clip(bitcast<u32>(norm), 0x1p-64f, factor * 0x1p64f); }
  return Clip(bitcast<u32>(norm), 1.0, factor);
}
fn clip_of_other(bits: u32) -> Clip {
  return Clip(bits, 1.0, bitcast<f32>(select(bits, 0u, bits == 0x7f800000u)));
}
fn clip_of_squares(total: vec3f, most: f32, eps: f32) -> Clip {
  let bits = bitcast<u32>(total.y) & 0x7fffffffu;
  if (bits >= 0x7f800000u) { return clip_of_other(bits); }
  if (total.y >= ${powerOf(largeFrom * largeScale ** 2)}) { return clip_of_large(sqrt(total.y), most); }
  if (total.x < ${powerOf(smallBelow)}) { return clip_by(sqrt(total.z) * ${powerOf(1 / smallScale)}, most, eps); }
  return clip_by(sqrt(total.x), most, eps);
}
fn factor_bits(clip: Clip) -> u32 {
  if (clip.coarse == 1.0) { return bitcast<u32>(clip.fine); }
  if (clip.fine >= 0x1p-62f) { return bitcast<u32>(clip.coarse * clip.fine); }
  return u32(round(clip.fine * 0x1p85f));
}
`;

/**
 * The sum of squares from the first `count` numbers of each of three planes of partial sums, in float64, whose range suffices. A plane
 * takes `length` numbers, and the first starts at `start`.
 */
export function squareSumOf(
  partials: KernelView,
  { start = 0, length, count = length }: PlanesOfSums,
): number {
  const [plain, large, small] = [0, 1, 2].map((plane) => {
    let sum = 0;
    for (let i = 0; i < count; i++) sum += partials[start + plane * length + i] as number;
    return sum;
  }) as [number, number, number];
  // Negated so that NaN, which is in all sums, returns here.
  if (!(large < largeFrom * largeScale ** 2)) return large / largeScale ** 2;
  return plain < smallBelow ? small / smallScale ** 2 : plain;
}

/** Stores a sum of squares as the first of the partial sums of each plane; the others do not change. */
export function keepSquareSum(
  partials: KernelView,
  { start = 0, length }: PlanesOfSums,
  sum: number,
): void {
  partials[start] = sum;
  partials[start + length] = sum * largeScale ** 2;
  partials[start + 2 * length] = sum * smallScale ** 2;
}

/** The layout of partial sums: `squareSums` planes of `length` numbers, of which `count` are used. */
interface PlanesOfSums {
  readonly start?: number;
  readonly length: number;
  readonly count?: number | undefined;
}

/** The factor of gradients with this norm, as one number and as a pair, as in the WGSL. */
export function clipFactors(
  norm: number,
  most: number,
  eps: number,
): { readonly factor: number; readonly coarse: number; readonly fine: number } {
  const divisor = norm + eps;
  const factor = divisor <= most ? 1 : most / divisor;
  const coarse = factor > 0 && factor < 2 ** -64 ? 2 ** -64 : 1;
  return { factor, coarse, fine: factor / coarse };
}
