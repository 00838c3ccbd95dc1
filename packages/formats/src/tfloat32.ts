import { defineFormat, type FloatFormat } from "./format.js";

/** NVIDIA's TF32, what tensor cores read of a float32: 1 sign, 8 exponent and 10 mantissa bits. Codes have 19 bits. */
export const tfloat32: FloatFormat<Uint32Array> = /* @__PURE__ */ defineFormat({
  name: "tfloat32",
  bits: 19,
  exponentBits: 8,
  mantissaBits: 10,
  bias: 127,
  isSigned: true,
  hasInfinity: true,
  hasZero: true,
  nanEncoding: "ieee",
  nanPayload: "truncated",
});
