/**
 * WGSL conversions between float32 and 16-bit codes, bit for bit equal to this package's TypeScript side. Each constant is a
 * complete declaration that needs no other constant and no `f16` feature; concatenate those that a shader uses.
 *
 * - Encoding rounds to nearest, ties to even: WGSL leaves the rounding of its own conversions open, lets them flush subnormals,
 *   and lets overflow become the largest finite number, which non-finite checks miss. It is integer arithmetic only, so that no
 *   compiler can contract it with the arithmetic before it.
 * - Decoding is exact. Float16 subnormals are kept; its one float operation has an exact, normal result.
 * - A NaN keeps its sign. As float16 it becomes `0x7e00`, as bfloat16 it keeps the upper bits of its payload with the quiet bit set.
 * - The vec4 forms hold element 0 in the low half of `q.x`, 1 in its high half, 2 and 3 likewise in `q.y`. They are free of branches.
 */

/** Declares `fn f32_to_f16_bits(x: f32) -> u32`: the float16 code in the low 16 bits, the rest 0. */
export const encodeFloat16: string = /* wgsl */ `
fn f32_to_f16_bits(x: f32) -> u32 {
  let u = bitcast<u32>(x);
  let a = max(u & 0x7fffffffu, 0x32000000u);
  let e = a >> 23u;
  let c = min(e, 113u);
  let m = (a & 0x007fffffu) | 0x00800000u;
  let r = (m + (0xffffffffu >> (c - 93u)) + ((m >> (126u - c)) & 1u)) >> (126u - c);
  let h = min(((e - c) << 10u) + r, 0x7c00u);
  return ((u >> 16u) & 0x8000u) | select(h, 0x7e00u, a > 0x7f800000u);
}
`;

/** Declares `fn f16_bits_to_f32(h: u32) -> f32`, which reads the low 16 bits of `h`. */
export const decodeFloat16: string = /* wgsl */ `
fn f16_bits_to_f32(h: u32) -> f32 {
  let a = (h & 0x7fffu) << 13u;
  let n = a + select(0x38000000u, 0x70000000u, a >= 0x0f800000u);
  let t = bitcast<u32>(bitcast<f32>(a + 0x38800000u) - 0x1p-14f);
  return bitcast<f32>(((h & 0x8000u) << 16u) | select(n, t, a < 0x00800000u));
}
`;

/** Declares `fn f32_to_bf16_bits(x: f32) -> u32`: the bfloat16 code in the low 16 bits, the rest 0. */
export const encodeBfloat16: string = /* wgsl */ `
fn f32_to_bf16_bits(x: f32) -> u32 {
  let u = bitcast<u32>(x);
  let r = u + 0x7fffu + ((u >> 16u) & 1u);
  return select(r, u | 0x00400000u, (u & 0x7fffffffu) > 0x7f800000u) >> 16u;
}
`;

/** Declares `fn bf16_bits_to_f32(b: u32) -> f32`, which reads the low 16 bits of `b`. */
export const decodeBfloat16: string = /* wgsl */ `
fn bf16_bits_to_f32(b: u32) -> f32 { return bitcast<f32>(b << 16u); }
`;

/** Declares `fn encode4_float16(v: vec4f) -> vec2u`. */
export const encode4Float16: string = /* wgsl */ `
fn encode4_float16(v: vec4f) -> vec2u {
  let u = bitcast<vec4u>(v);
  let a = max(u & vec4u(0x7fffffffu), vec4u(0x32000000u));
  let e = a >> vec4u(23u);
  let c = min(e, vec4u(113u));
  let m = (a & vec4u(0x007fffffu)) | vec4u(0x00800000u);
  let s = 126u - c;
  let r = (m + (vec4u(0xffffffffu) >> (c - 93u)) + ((m >> s) & vec4u(1u))) >> s;
  let f = min(((e - c) << vec4u(10u)) + r, vec4u(0x7c00u));
  let h = select(f, vec4u(0x7e00u), a > vec4u(0x7f800000u)) | ((u >> vec4u(16u)) & vec4u(0x8000u));
  return h.xz | (h.yw << vec2u(16u));
}
`;

/** Declares `fn decode4_float16(q: vec2u) -> vec4f`. */
export const decode4Float16: string = /* wgsl */ `
fn decode4_float16(q: vec2u) -> vec4f {
  let h = q.xxyy << vec4u(16u, 0u, 16u, 0u);
  let a = (h >> vec4u(3u)) & vec4u(0x0fffe000u);
  let n = a + select(vec4u(0x38000000u), vec4u(0x70000000u), a >= vec4u(0x0f800000u));
  let t = bitcast<vec4u>(bitcast<vec4f>(a + 0x38800000u) - 0x1p-14f);
  return bitcast<vec4f>((h & vec4u(0x80000000u)) | select(n, t, a < vec4u(0x00800000u)));
}
`;

/** Declares `fn encode4_bfloat16(v: vec4f) -> vec2u`. */
export const encode4Bfloat16: string = /* wgsl */ `
fn encode4_bfloat16(v: vec4f) -> vec2u {
  let u = bitcast<vec4u>(v);
  let r = u + ((u >> vec4u(16u)) & vec4u(1u)) + 0x7fffu;
  let b = select(r, u | vec4u(0x00400000u), (u & vec4u(0x7fffffffu)) > vec4u(0x7f800000u));
  return (b.xz >> vec2u(16u)) | (b.yw & vec2u(0xffff0000u));
}
`;

/** Declares `fn decode4_bfloat16(q: vec2u) -> vec4f`. */
export const decode4Bfloat16: string = /* wgsl */ `
fn decode4_bfloat16(q: vec2u) -> vec4f {
  return bitcast<vec4f>((q.xxyy << vec4u(16u, 0u, 16u, 0u)) & vec4u(0xffff0000u));
}
`;
