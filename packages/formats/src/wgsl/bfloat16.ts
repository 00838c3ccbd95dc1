/** Declares `fn f32_to_bf16_bits(x: f32) -> u32`: the bfloat16 code in the low 16 bits, the rest 0. */
export const encodeBfloat16: string = /* wgsl */ `
fn f32_to_bf16_bits(x: f32) -> u32 {
  let u = bitcast<u32>(x);
  let r = u + 0x7fffu + ((u >> 16u) & 1u);
  return select(r, u | 0x00400000u, (u & 0x7fffffffu) > 0x7f800000u) >> 16u;
}
`;

/** Declares `fn f32_to_bf16_bits_stochastic(x: f32, bits: u32) -> u32`, which uses the low 16 of the random bits. */
export const encodeBfloat16Stochastic: string = /* wgsl */ `
fn f32_to_bf16_bits_stochastic(x: f32, bits: u32) -> u32 {
  let u = bitcast<u32>(x);
  return select(u + (bits & 0xffffu), u | 0x00400000u, (u & 0x7fffffffu) > 0x7f800000u) >> 16u;
}
`;

/** Declares `fn bf16_bits_to_f32(b: u32) -> f32`, which reads the low 16 bits of `b`. */
export const decodeBfloat16: string = /* wgsl */ `
fn bf16_bits_to_f32(b: u32) -> f32 { return bitcast<f32>(b << 16u); }
`;

/** Declares `fn encode4_bfloat16(x: vec4f) -> vec2u`. */
export const encode4Bfloat16: string = /* wgsl */ `
fn encode4_bfloat16(x: vec4f) -> vec2u {
  let u = bitcast<vec4u>(x);
  let r = u + ((u >> vec4u(16u)) & vec4u(1u)) + 0x7fffu;
  let b = select(r, u | vec4u(0x00400000u), (u & vec4u(0x7fffffffu)) > vec4u(0x7f800000u));
  return (b.xz >> vec2u(16u)) | (b.yw & vec2u(0xffff0000u));
}
`;

/** Declares `fn encode4_bfloat16_stochastic(x: vec4f, bits: vec4u) -> vec2u`. */
export const encode4Bfloat16Stochastic: string = /* wgsl */ `
fn encode4_bfloat16_stochastic(x: vec4f, bits: vec4u) -> vec2u {
  let u = bitcast<vec4u>(x);
  let r = u + (bits & vec4u(0xffffu));
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

/** Declares `fn round4_bfloat16(x: vec4f) -> vec4f`: what `decode4_bfloat16(encode4_bfloat16(x))` gives. */
export const round4Bfloat16: string = /* wgsl */ `
fn round4_bfloat16(x: vec4f) -> vec4f {
  let u = bitcast<vec4u>(x);
  let r = u + ((u >> vec4u(16u)) & vec4u(1u)) + 0x7fffu;
  let b = select(r, u | vec4u(0x00400000u), (u & vec4u(0x7fffffffu)) > vec4u(0x7f800000u));
  return bitcast<vec4f>(b & vec4u(0xffff0000u));
}
`;
