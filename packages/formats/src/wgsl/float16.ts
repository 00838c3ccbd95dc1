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
