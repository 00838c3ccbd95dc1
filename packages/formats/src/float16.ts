import { defineFormat, type FloatFormat } from "./format.js";

/** IEEE 754 binary16: 1 sign, 5 exponent and 10 mantissa bits; from 2⁻²⁴ (subnormal) or 2⁻¹⁴ (normal) to 65504. */
export const float16: FloatFormat<Uint16Array> = /* @__PURE__ */ defineFormat({
  name: "float16",
  bits: 16,
  exponentBits: 5,
  mantissaBits: 10,
  bias: 15,
  isSigned: true,
  hasInfinity: true,
  hasZero: true,
  nanEncoding: "ieee",
  nanPayload: "canonical",
});
