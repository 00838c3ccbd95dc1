import { decoder, decoder4, encoder, encoder4, type NarrowFormat } from "./narrow.js";

const float4e2m1fn: NarrowFormat = {
  id: "f4e2m1fn",
  name: "float4e2m1fn",
  bits: 4,
  mantissaBits: 1,
  bias: 1,
  largest: 7,
};

/**
 * Declares `fn f32_to_f4e2m1fn_bits(x: f32) -> u32`: the code in the low 4 bits, the rest 0. The format has neither infinity
 * nor NaN: larger numbers become 6 of their sign, and every NaN becomes 6, as with `saturate: true` in TypeScript.
 */
export const encodeFloat4e2m1fn: string = /* @__PURE__ */ encoder(float4e2m1fn);

/** Declares `fn f32_to_f4e2m1fn_bits_stochastic(x: f32, bits: u32) -> u32`. */
export const encodeFloat4e2m1fnStochastic: string = /* @__PURE__ */ encoder(float4e2m1fn, {
  stochastic: true,
});

/** Declares `fn f4e2m1fn_bits_to_f32(h: u32) -> f32`, which reads the low 4 bits of `h`. */
export const decodeFloat4e2m1fn: string = /* @__PURE__ */ decoder(float4e2m1fn);

/** Declares `fn encode4_float4e2m1fn(x: vec4f) -> u32`: four codes in the low 16 bits, the rest 0. */
export const encode4Float4e2m1fn: string = /* @__PURE__ */ encoder4(float4e2m1fn);

/** Declares `fn encode4_float4e2m1fn_stochastic(x: vec4f, bits: vec4u) -> u32`. */
export const encode4Float4e2m1fnStochastic: string = /* @__PURE__ */ encoder4(float4e2m1fn, {
  stochastic: true,
});

/** Declares `fn decode4_float4e2m1fn(q: u32) -> vec4f`, which reads the low 16 bits of `q`. */
export const decode4Float4e2m1fn: string = /* @__PURE__ */ decoder4(float4e2m1fn);
