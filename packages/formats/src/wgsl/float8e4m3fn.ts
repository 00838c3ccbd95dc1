import { decoder, decoder4, encoder, encoder4, type NarrowFormat } from "./narrow.js";

const float8e4m3fn: NarrowFormat = {
  id: "f8e4m3fn",
  name: "float8e4m3fn",
  bits: 8,
  mantissaBits: 3,
  bias: 7,
  largest: 0x7e,
  nan: 0x7f,
};

/** Declares `fn f32_to_f8e4m3fn_bits(x: f32) -> u32`: the float8e4m3fn code in the low 8 bits, the rest 0. */
export const encodeFloat8e4m3fn: string = /* @__PURE__ */ encoder(float8e4m3fn);

/** Declares `fn f32_to_f8e4m3fn_bits_saturate(x: f32) -> u32`: beyond the largest number, and at infinity, that number. */
export const encodeFloat8e4m3fnSaturate: string = /* @__PURE__ */ encoder(float8e4m3fn, {
  saturate: true,
});

/** Declares `fn f32_to_f8e4m3fn_bits_stochastic(x: f32, bits: u32) -> u32`. */
export const encodeFloat8e4m3fnStochastic: string = /* @__PURE__ */ encoder(float8e4m3fn, {
  stochastic: true,
});

/** Declares `fn f32_to_f8e4m3fn_bits_saturate_stochastic(x: f32, bits: u32) -> u32`. */
export const encodeFloat8e4m3fnSaturateStochastic: string = /* @__PURE__ */ encoder(float8e4m3fn, {
  saturate: true,
  stochastic: true,
});

/** Declares `fn f8e4m3fn_bits_to_f32(h: u32) -> f32`, which reads the low 8 bits of `h`. */
export const decodeFloat8e4m3fn: string = /* @__PURE__ */ decoder(float8e4m3fn);

/** Declares `fn encode4_float8e4m3fn(x: vec4f) -> u32`. */
export const encode4Float8e4m3fn: string = /* @__PURE__ */ encoder4(float8e4m3fn);

/** Declares `fn encode4_float8e4m3fn_saturate(x: vec4f) -> u32`. */
export const encode4Float8e4m3fnSaturate: string = /* @__PURE__ */ encoder4(float8e4m3fn, {
  saturate: true,
});

/** Declares `fn encode4_float8e4m3fn_stochastic(x: vec4f, bits: vec4u) -> u32`. */
export const encode4Float8e4m3fnStochastic: string = /* @__PURE__ */ encoder4(float8e4m3fn, {
  stochastic: true,
});

/** Declares `fn encode4_float8e4m3fn_saturate_stochastic(x: vec4f, bits: vec4u) -> u32`. */
export const encode4Float8e4m3fnSaturateStochastic: string = /* @__PURE__ */ encoder4(
  float8e4m3fn,
  { saturate: true, stochastic: true },
);

/** Declares `fn decode4_float8e4m3fn(q: u32) -> vec4f`. */
export const decode4Float8e4m3fn: string = /* @__PURE__ */ decoder4(float8e4m3fn);
