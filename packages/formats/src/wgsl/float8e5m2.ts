import { decoder, decoder4, encoder, encoder4, type NarrowFormat } from "./narrow.js";

const float8e5m2: NarrowFormat = {
  id: "f8e5m2",
  name: "float8e5m2",
  bits: 8,
  mantissaBits: 2,
  bias: 15,
  largest: 0x7b,
  nan: 0x7e,
};

/** Declares `fn f32_to_f8e5m2_bits(x: f32) -> u32`: the float8e5m2 code in the low 8 bits, the rest 0. */
export const encodeFloat8e5m2: string = /* @__PURE__ */ encoder(float8e5m2);

/** Declares `fn f32_to_f8e5m2_bits_saturate(x: f32) -> u32`: beyond the largest number, and at infinity, that number. */
export const encodeFloat8e5m2Saturate: string = /* @__PURE__ */ encoder(float8e5m2, {
  saturate: true,
});

/** Declares `fn f32_to_f8e5m2_bits_stochastic(x: f32, bits: u32) -> u32`. */
export const encodeFloat8e5m2Stochastic: string = /* @__PURE__ */ encoder(float8e5m2, {
  stochastic: true,
});

/** Declares `fn f32_to_f8e5m2_bits_saturate_stochastic(x: f32, bits: u32) -> u32`. */
export const encodeFloat8e5m2SaturateStochastic: string = /* @__PURE__ */ encoder(float8e5m2, {
  saturate: true,
  stochastic: true,
});

/** Declares `fn f8e5m2_bits_to_f32(h: u32) -> f32`, which reads the low 8 bits of `h`. */
export const decodeFloat8e5m2: string = /* @__PURE__ */ decoder(float8e5m2);

/** Declares `fn encode4_float8e5m2(x: vec4f) -> u32`. */
export const encode4Float8e5m2: string = /* @__PURE__ */ encoder4(float8e5m2);

/** Declares `fn encode4_float8e5m2_saturate(x: vec4f) -> u32`. */
export const encode4Float8e5m2Saturate: string = /* @__PURE__ */ encoder4(float8e5m2, {
  saturate: true,
});

/** Declares `fn encode4_float8e5m2_stochastic(x: vec4f, bits: vec4u) -> u32`. */
export const encode4Float8e5m2Stochastic: string = /* @__PURE__ */ encoder4(float8e5m2, {
  stochastic: true,
});

/** Declares `fn encode4_float8e5m2_saturate_stochastic(x: vec4f, bits: vec4u) -> u32`. */
export const encode4Float8e5m2SaturateStochastic: string = /* @__PURE__ */ encoder4(float8e5m2, {
  saturate: true,
  stochastic: true,
});

/** Declares `fn decode4_float8e5m2(q: u32) -> vec4f`. */
export const decode4Float8e5m2: string = /* @__PURE__ */ decoder4(float8e5m2);
