import { decoder, decoder4, encoder, encoder4, type NarrowFormat } from "./narrow.js";

const float16: NarrowFormat = {
  id: "f16",
  name: "float16",
  bits: 16,
  mantissaBits: 10,
  bias: 15,
  largest: 0x7bff,
  nan: 0x7e00,
};

/** Declares `fn f32_to_f16_bits(x: f32) -> u32`: the float16 code in the low 16 bits, the rest 0. */
export const encodeFloat16: string = /* @__PURE__ */ encoder(float16);

/** Declares `fn f32_to_f16_bits_stochastic(x: f32, bits: u32) -> u32`. */
export const encodeFloat16Stochastic: string = /* @__PURE__ */ encoder(float16, {
  stochastic: true,
});

/** Declares `fn f16_bits_to_f32(h: u32) -> f32`, which reads the low 16 bits of `h`. */
export const decodeFloat16: string = /* @__PURE__ */ decoder(float16);

/** Declares `fn encode4_float16(x: vec4f) -> vec2u`. */
export const encode4Float16: string = /* @__PURE__ */ encoder4(float16);

/** Declares `fn encode4_float16_stochastic(x: vec4f, bits: vec4u) -> vec2u`. */
export const encode4Float16Stochastic: string = /* @__PURE__ */ encoder4(float16, {
  stochastic: true,
});

/** Declares `fn decode4_float16(q: vec2u) -> vec4f`. */
export const decode4Float16: string = /* @__PURE__ */ decoder4(float16);

/**
 * Declares `fn round4_float16(x: vec4f) -> vec4f`: what `decode4_float16(encode4_float16(x))` gives, for about a third of its
 * cost. WGSL defines `round` as exact with ties to even, and every product here is one by a power of two that float32 holds
 * exactly, so that all adapters agree: magnitudes are counted in units of float16, rounded, and scaled back. From 65520 on the
 * result is infinity, and a NaN becomes the one that encoding makes of it; neither takes part in arithmetic that counts.
 */
export const round4Float16: string = /* wgsl */ `
fn round4_float16(x: vec4f) -> vec4f {
  let u = bitcast<vec4u>(x);
  let a = u & vec4u(0x7fffffffu);
  let e = max(a & vec4u(0x7f800000u), vec4u(0x38800000u));
  let k = round(bitcast<vec4f>(a) * bitcast<vec4f>(0x84000000u - e));
  let n = bitcast<vec4u>(k * bitcast<vec4f>(e - 0x05000000u));
  let s = select(vec4u(0x7f800000u), vec4u(0x7fc00000u), a > vec4u(0x7f800000u));
  return bitcast<vec4f>((u & vec4u(0x80000000u)) | select(n, s, a >= vec4u(0x477ff000u)));
}
`;
