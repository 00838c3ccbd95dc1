import { defineFormat, type FloatFormat } from "./format.js";

/** The upper half of a float32: 1 sign, 8 exponent and 7 mantissa bits; float32's range at 2 to 3 decimal digits. */
export const bfloat16: FloatFormat<Uint16Array> = /* @__PURE__ */ defineFormat({
  name: "bfloat16",
  bits: 16,
  exponentBits: 8,
  mantissaBits: 7,
  bias: 127,
  isSigned: true,
  hasInfinity: true,
  hasZero: true,
  nanEncoding: "ieee",
  nanPayload: "truncated",
});
