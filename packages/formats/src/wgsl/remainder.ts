/**
 * Float32 as bfloat16 and 16 more bits, with nothing lost: `splitFloat32Array` and `joinFloat32Array`, whose file says how.
 */

/** Declares `fn split_f32(x: f32) -> vec2u`: the bfloat16 code and the remainder, each in the low 16 bits. */
export const splitFloat32: string = /* wgsl */ `
fn split_f32(x: f32) -> vec2u {
  let u = bitcast<u32>(x);
  let r = select(u + 0x8000u, u | 0x00400000u, (u & 0x7fffffffu) > 0x7f800000u);
  return vec2u(r >> 16u, u & 0xffffu);
}
`;

/** Declares `fn join_f32(code: u32, remainder: u32) -> f32`; the upper halves of both must be 0. */
export const joinFloat32: string = /* wgsl */ `
fn join_f32(code: u32, remainder: u32) -> f32 {
  let carry = select(remainder >> 15u, 0u, (code & 0x7fffu) > 0x7f80u);
  return bitcast<f32>(((code - carry) << 16u) | remainder);
}
`;

/** Declares `fn split4_float32(x: vec4f) -> vec4u`: bfloat16 codes in `xy` and remainders in `zw`, each pair as quads are. */
export const split4Float32: string = /* wgsl */ `
fn split4_float32(x: vec4f) -> vec4u {
  let u = bitcast<vec4u>(x);
  let r = select(u + 0x8000u, u | vec4u(0x00400000u), (u & vec4u(0x7fffffffu)) > vec4u(0x7f800000u));
  let codes = (r.xz >> vec2u(16u)) | (r.yw & vec2u(0xffff0000u));
  return vec4u(codes, (u.xz & vec2u(0xffffu)) | (u.yw << vec2u(16u)));
}
`;

/** Declares `fn join4_float32(codes: vec2u, remainders: vec2u) -> vec4f`. */
export const join4Float32: string = /* wgsl */ `
fn join4_float32(codes: vec2u, remainders: vec2u) -> vec4f {
  let c = (codes.xxyy << vec4u(16u, 0u, 16u, 0u)) & vec4u(0xffff0000u);
  let r = (remainders.xxyy >> vec4u(0u, 16u, 0u, 16u)) & vec4u(0xffffu);
  let carry = select(r & vec4u(0x8000u), vec4u(0u), (c & vec4u(0x7fff0000u)) > vec4u(0x7f800000u));
  return bitcast<vec4f>((c - (carry << vec4u(1u))) | r);
}
`;
